"""
Eight collectives
=================

After this page you can choose the collective that you need, and say what each rank holds
before and after it.

In a *collective*, all ranks of a group take part. Each rank calls the same function, in
the same order, with tensors that fit together. If one rank leaves out a call, the others
wait.

Reduce and gather give their result to one rank. All-reduce and all-gather give it to every rank.

This page runs eight collectives on four ranks, with gloo. For each one, it shows the call
and what each rank holds before and after. The whole worker is
``gallery/operations/collectives/collectives.py``, which is in the zip file at the end of this
page. One run has all the results. :doc:`starting-processes` describes ``launch``.
"""

from launcher import launch

[tables, *_] = launch("collectives/collectives.py", ranks=4, show=False)


def show(collective):
    """Print the table that rank 0 made for a collective."""
    print(tables.partition(f"--- {collective}\n")[2].partition("---")[0], end="")


# %%
# Broadcast
# ---------
#
# All ranks receive a copy of one rank's tensor. A typical use is to start all ranks with
# the same parameters.
#
# .. diagram:: operations/collectives/broadcast
#
# .. listing:: gallery/operations/collectives/collectives.py
#    :part: broadcast
#    :no-caption:

show("broadcast")

# %%
# Reduce
# ------
#
# An operation combines the tensors of all ranks, and one rank receives the result. Here the
# operation is the sum. What the other ranks hold afterwards is undefined.
#
# .. diagram:: operations/collectives/reduce
#
# .. listing:: gallery/operations/collectives/collectives.py
#    :part: reduce
#    :no-caption:

show("reduce")

# %%
# All-reduce
# ----------
#
# All-reduce is like reduce, with one difference: every rank receives the result. DistributedDataParallel
# averages gradients with it.
#
# .. diagram:: operations/collectives/all-reduce
#
# .. listing:: gallery/operations/collectives/collectives.py
#    :part: all_reduce
#    :no-caption:

show("all_reduce")

# %%
# Scatter
# -------
#
# One rank has a list, and each rank receives one piece of it.
#
# .. diagram:: operations/collectives/scatter
#
# .. listing:: gallery/operations/collectives/collectives.py
#    :part: scatter
#    :no-caption:

show("scatter")

# %%
# Gather
# ------
#
# Gather is the opposite of scatter: one rank collects a piece from each rank.
#
# .. diagram:: operations/collectives/gather
#
# .. listing:: gallery/operations/collectives/collectives.py
#    :part: gather
#    :no-caption:

show("gather")

# %%
# All-gather
# ----------
#
# All-gather is like gather, but every rank receives all the pieces. FSDP puts sharded
# parameters together with it.
#
# .. diagram:: operations/collectives/all-gather
#
# .. listing:: gallery/operations/collectives/collectives.py
#    :part: all_gather
#    :no-caption:

show("all_gather")

# %%
# Reduce-scatter
# --------------
#
# Every rank has a list. Rank 0 receives the sum of all first pieces, rank 1 the sum of all
# second pieces, and so on. FSDP reduces gradients with a reduce-scatter. A reduce-scatter
# and then an all-gather give the same result as an all-reduce.
#
# .. diagram:: operations/collectives/reduce-scatter
#
# .. listing:: gallery/operations/collectives/collectives.py
#    :part: reduce_scatter
#    :no-caption:

show("reduce_scatter")

# %%
# All-to-all
# ----------
#
# Every rank has a piece for each rank. If each rank's pieces are a row of a matrix, the
# all-to-all transposes this matrix. Models with a mixture of experts use an all-to-all to
# send tokens to their experts.
#
# .. diagram:: operations/collectives/all-to-all
#
# .. listing:: gallery/operations/collectives/collectives.py
#    :part: all_to_all
#    :no-caption:

show("all_to_all")

# %%
# Other operations than the sum
# -----------------------------
#
# ``ReduceOp`` lists the operations that a reduce, an all-reduce or a reduce-scatter can use:

import torch.distributed as dist

print(", ".join(dist.ReduceOp.RedOpType.__members__))

# %%
# Not every backend supports all of them, with every type. This page runs the sum only.
