"""
Collectives
===========

To distribute or to combine the data of many ranks, you could send messages in a loop. A *collective* does it in one
call, in which all ranks of a group take part, and the backend chooses the messages for you. To choose a collective,
find in this table what your ranks have and what they need:

.. list-table::
   :header-rows: 1

   * - Collective
     - Before, on which ranks
     - After, on which ranks
   * - broadcast
     - a tensor, on one
     - a copy, on all
   * - reduce
     - a tensor, on all
     - the sum, on one
   * - all-reduce
     - a tensor, on all
     - the sum, on all
   * - scatter
     - a list with a piece for each rank, on one
     - its own piece, on each
   * - gather
     - a piece, on each
     - the list of all pieces, on one
   * - all-gather
     - a piece, on each
     - the list of all pieces, on all
   * - reduce-scatter
     - a list with a piece for each rank, on all
     - the sum of the pieces for it, on each
   * - all-to-all
     - a list with a piece for each rank, on all
     - the list of the pieces for it, on each

All ranks call the same functions in the same order, with tensors that fit together. If one rank leaves out a call,
the others wait until it makes its next call. If that next call happens to match, the results can be wrong without an
error. If no call comes, the wait ends with the timeout of the group, or with an error when the rank has ended.

One program runs all eight collectives on four ranks, with gloo. Each section shows a call, and what each rank holds
before and after it; ``-`` means that the rank holds nothing, or something undefined. The whole program is
``gallery/operations/collectives/collectives.py``, which is in the zip file at the end of this page.
:doc:`starting-processes` describes ``launch``.
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
# All ranks receive a copy of one rank's tensor, for example so that all start a training with the same
# parameters.
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
# An operation, here the sum, combines the tensors of all ranks, and one rank receives the result. Do not
# use the tensors of the other ranks afterwards, because what they hold is undefined.
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
# All-reduce differs from reduce in one point: every rank receives the result. DistributedDataParallel
# averages gradients with it, because every rank then updates its own copy of the model.
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
# One rank has a list, for example parts of a data set, and each rank receives one piece of it.
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
# Gather is the opposite of scatter: one rank collects a piece from each rank, for example to write a
# report.
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
# All-gather differs from gather in one point: every rank receives all the pieces. FSDP uses it to put sharded
# parameters together, because every rank computes with all of them.
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
# Every rank has a list. Rank 0 receives the sum of all first pieces, rank 1 the sum of all second pieces, and so on.
# FSDP reduces gradients with a reduce-scatter, because each rank needs only the gradients of its own shard. A
# reduce-scatter and then an all-gather give the same result as an all-reduce.
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
# Every rank has a piece for each rank. If each rank's pieces are a row of a matrix, the all-to-all transposes this
# matrix. Models with a mixture of experts use an all-to-all to send tokens to their experts, which are on different
# ranks.
#
# Here the pieces of a rank are the elements of one tensor, so the call is ``all_to_all_single``; ``all_to_all`` takes
# lists of tensors.
#
# .. diagram:: operations/collectives/all-to-all
#
# .. listing:: gallery/operations/collectives/collectives.py
#    :part: all_to_all
#    :no-caption:

show("all_to_all")

# %%
# Reductions other than the sum
# -----------------------------
#
# The sum is the default, but a reduce, an all-reduce or a reduce-scatter can also average, multiply, or find the
# smallest or the largest element. ``ReduceOp`` lists the operations:

import torch.distributed as dist

print(", ".join(dist.ReduceOp.RedOpType.__members__))

# %%
# ``BAND``, ``BOR`` and ``BXOR`` combine the bits of integers, and ``PREMUL_SUM`` multiplies each input by a factor
# before it adds. No backend needs to have all of them, or all dtypes for each. So before you rely on one, try it with
# your backend and your dtype.
#
# Not run here: operations other than the sum.
