"""
All the collectives
===================

In a *collective*, all ranks of a group take part: each calls the same function, in
the same order, with tensors that fit together. A rank that leaves one out makes the
others wait.

This page shows every collective on four ranks, with gloo: the call, and what each
rank holds before and after it. The whole worker is ``gallery/operations/workers/collectives.py``,
which you find in the download at the end of this page. All of them run in one go:
"""

from launcher import launch

[tables, *_] = launch("workers/collectives.py", ranks=4, show=False)


def show(collective):
    """Print the table that rank 0 made of a collective."""
    print(tables.partition(f"--- {collective}\n")[2].partition("---")[0], end="")


# %%
# Broadcast
# ---------
#
# One rank's tensor is copied to all the others. Typical use: every rank starts
# with the same parameters.
#
# .. diagram:: collectives/broadcast
#
# .. literalinclude:: /../gallery/operations/workers/collectives.py
#    :language: python
#    :dedent:
#    :start-after: # [broadcast]
#    :end-before: # [/broadcast]

show("broadcast")

# %%
# Reduce
# ------
#
# The tensors of all ranks are combined, here added, and one rank receives the
# result. What the others hold afterwards is undefined.
#
# .. diagram:: collectives/reduce
#
# .. literalinclude:: /../gallery/operations/workers/collectives.py
#    :language: python
#    :dedent:
#    :start-after: # [reduce]
#    :end-before: # [/reduce]

show("reduce")

# %%
# All-reduce
# ----------
#
# Like reduce, but every rank receives the result. This is how
# DistributedDataParallel averages gradients.
#
# .. diagram:: collectives/all-reduce
#
# .. literalinclude:: /../gallery/operations/workers/collectives.py
#    :language: python
#    :dedent:
#    :start-after: # [all_reduce]
#    :end-before: # [/all_reduce]

show("all_reduce")

# %%
# Scatter
# -------
#
# One rank has a list and gives each rank one piece of it.
#
# .. diagram:: collectives/scatter
#
# .. literalinclude:: /../gallery/operations/workers/collectives.py
#    :language: python
#    :dedent:
#    :start-after: # [scatter]
#    :end-before: # [/scatter]

show("scatter")

# %%
# Gather
# ------
#
# The opposite: one rank collects a piece from each.
#
# .. diagram:: collectives/gather
#
# .. literalinclude:: /../gallery/operations/workers/collectives.py
#    :language: python
#    :dedent:
#    :start-after: # [gather]
#    :end-before: # [/gather]

show("gather")

# %%
# All-gather
# ----------
#
# Like gather, but every rank receives all the pieces. FSDP puts sharded parameters
# together this way.
#
# .. diagram:: collectives/all-gather
#
# .. literalinclude:: /../gallery/operations/workers/collectives.py
#    :language: python
#    :dedent:
#    :start-after: # [all_gather]
#    :end-before: # [/all_gather]

show("all_gather")

# %%
# Reduce-scatter
# --------------
#
# Every rank has a list. The first pieces are added up and go to rank 0, the second
# ones to rank 1, and so on. FSDP reduces gradients this way. An all-gather after it
# gives the same as an all-reduce.
#
# .. diagram:: collectives/reduce-scatter
#
# .. literalinclude:: /../gallery/operations/workers/collectives.py
#    :language: python
#    :dedent:
#    :start-after: # [reduce_scatter]
#    :end-before: # [/reduce_scatter]

show("reduce_scatter")

# %%
# All-to-all
# ----------
#
# Every rank has a piece for each rank. Written as a matrix with one row for each rank,
# the pieces are transposed. Mixtures of experts send tokens to experts this way.
#
# .. diagram:: collectives/all-to-all
#
# .. literalinclude:: /../gallery/operations/workers/collectives.py
#    :language: python
#    :dedent:
#    :start-after: # [all_to_all]
#    :end-before: # [/all_to_all]

show("all_to_all")

# %%
# Which operations there are besides the sum says ``ReduceOp``: product, minimum,
# maximum, average and a few more; not every backend has them all.

# sphinx_gallery_start_ignore
assert tables.count("---") == 8
assert "rank 3  before [30, 31, 32, 33]    after [3, 13, 23, 33]" in tables
# sphinx_gallery_end_ignore
