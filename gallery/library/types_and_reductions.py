"""
Dtypes and reductions that the library lacks
============================================

PyTorch passes dtypes and operations that your library does not have, or that it computes in another way. A wrong
choice need not raise an error: with MPI's own maximum, a NaN can make one rank skip an optimizer step that another
one takes. For each pair of a dtype and a ``ReduceOp``, you must decide who reduces: the library by itself, the library
with a function of yours, or the frame.

The table below shows this decision for ``mpich``. To find it, a worker reduces each pair with ``mpich``, and then by
MPI alone, with ``MPI_Reduce_local``, a function that combines two arrays without another rank. The entries mean:

- "MPI": MPI reduces by itself, because a type of the standard gives the right bits, whichever operand comes first.
- "frame": a function of the frame reduces. For most tensors above 1 KiB, MPI calls this function.
- "–": PyTorch does not define the pair, as :doc:`/tutorial/options-and-reductions` shows.

.. admonition:: How the table is made
   :collapsible: closed

   .. listing:: gallery/library/types_and_reductions/what_mpi_has.py
      :part: ways
"""

from launcher import launch
from result_table import show_table

output = launch("types_and_reductions/what_mpi_has.py", ranks=2, show=False)
header, *rows = [line.split("\t") for line in output[0].splitlines()]
show_table(header, rows)

# %%
# The pairs with "frame" are those that the MPI standard cannot reduce correctly, for one of two reasons:
#
# - *The type is missing.* The MPI standard has no C types for floats of 8 or 16 bits, and its bool has logical
#   operations only. If your library adds types, test each pair: a product of ``MPIX_BFLOAT16``, a type that MPICH
#   5.0.2 adds, ends the process with a failed assertion.
# - *The result depends on the order.* The minimum or maximum of a number and NaN is the second of the two in
#   MPICH. Neither MPI nor c10d has a rule for NaN, as :doc:`/right/tensors-of-every-kind` explains, but the
#   docstring of ``all_reduce`` promises the same bits on all ranks.
#
# Bug: an operation that has the same name
# ----------------------------------------
#
# ``MPI_FLOAT`` and ``MPI_MAX`` look like the right choice for ``MAX`` of ``float32``, but their result depends on the
# order. The next worker passes them to MPI with ``ctypes``. ``HANDLES`` has the constants of ``mpi.h``, and
# ``arguments_of`` returns both addresses, the number of elements, the type and the operation:
#
# .. listing:: gallery/library/types_and_reductions/maximum_of_nan.py
#    :part: mistake
#
# Rank 0 has a NaN and rank 1 the number one. Each rank takes an optimizer step only if the result is finite, as
# programs do that skip steps with bad gradients. ``max_by_backend`` is the all-reduce of ``mpich`` with ``MAX``:
#
# .. listing:: gallery/library/types_and_reductions/maximum_of_nan.py
#    :part: use

launch("types_and_reductions/maximum_of_nan.py", ranks=2)

# %%
# MPICH computes ``a > b ? a : b``, and a comparison with NaN is false, so the second operand wins. The ranks have
# the operands in opposite order, and therefore get different results: one takes the step, the other skips it.
#
# If the tensors have 1000 numbers, each rank reduces one half for both, so the ranks agree, and only one half of
# the result is NaN. But MPI does not say for which sizes the ranks agree. A test with finite numbers, or one that
# looks only at the norm on rank 1, does not find this bug.
#
# The fix is to send ``MIN`` and ``MAX`` of floats to the frame's function, which returns NaN in both orders.
#
# A user-defined operation
# ------------------------
#
# The frame can reduce the pairs that MPI lacks, but MPI has the algorithms that move long tensors. If a library accepts
# functions, it can call yours and keep its algorithms. MPI accepts a function through ``MPI_Op_create_c``. But MPI
# calls it with two pointers, a count and a datatype only, so the function learns neither the operation nor, since MPI
# lacks the type, the dtype.
#
# A function for each pair would work, but there would be dozens of them. Instead, the backend creates a datatype
# for the call and gives it an attribute, a pointer that MPI keeps with the datatype. It points to the operation of the
# frame, so when MPI calls the function, the function finds the frame's own ``combine`` there:
#
# .. diagram:: library/types_and_reductions/diagram
#
# .. admonition:: ``Reduction``
#    :collapsible: closed
#
#    The datatype is as long as one element, so MPI never splits an element when it divides the data among the
#    ranks. ``combine`` does not divide for ``AVG``, because MPI calls it for one pair of arrays after another, and
#    all of them have been divided before.
#
#    .. listing:: extension/mpi_collectives/src/types.hpp
#       :part: reduction
#
# All ranks must get the same bits, but MPI may combine the ranks in any order, because the backend creates its
# operation as commutative. As in the bug above, two ranks may then combine the same two arrays in opposite order. So
# the function must return the same bits for both orders, as the frame's do: a sum of two floats does not depend on
# their order, and the frame's maximum of a number and NaN is always NaN.
#
# How often a sum is rounded
# --------------------------
#
# A sum of many floats also depends on how often it is rounded, and rounding matters most with 8 or 16 bits. If the
# frame has the elements of all ranks at the same time, it adds them up as ``float`` and rounds once. MPI has two arrays
# at a time, so each sum of two is rounded. The backend does both: up to 1 KiB it exchanges the bytes and reduces them
# in the frame, and above that it calls MPI.
#
# Sums of ``float8_e4m3fn``, ``float8_e5m2`` and their ``fnuz`` forms are always reduced in the frame, because with
# two or three bits after the leading one, each rounding is a large error.
#
# MPI has no average, and no sum with a factor, so both become sums of inputs that have been changed before. The frame
# multiplies by the factor of ``PREMUL_SUM`` before it calls the transport, and the transport divides the inputs of
# ``AVG`` before MPI adds them:
#
# .. admonition:: The inputs of ``AVG``
#    :collapsible: closed
#
#    For ``AVG``, ``op.reduce`` divides an input that it gets as the only source, so the transport calls it with each
#    input. Unless the call is in place, the transport divides a copy, so that the inputs of the program do not
#    change.
#
#    .. listing:: extension/mpi_collectives/src/calls.hpp
#       :start-at: const bool divides
#       :end-before: void post
#
# On four ranks, the next worker adds 256, 1, 1 and 1 in ``bfloat16``, first in a tensor of 1 KiB, and then in one that
# has one element more. It also averages 30,000 in ``float16``, with ``mpich`` and with gloo:
#
# .. listing:: gallery/library/types_and_reductions/rounding.py
#    :part: sums

output = launch("types_and_reductions/rounding.py", ranks=4, show=False)
print(output[0], end="")

# sphinx_gallery_start_ignore
assert output == output[:1] * 4
# sphinx_gallery_end_ignore

# %%
# All ranks print the same. The exact sum, 259, lies between two numbers of ``bfloat16``, 258 and 260. The short
# tensor has 260, the result of one rounding. The long one has 258, because a one was lost on the way: 256 + 1 was
# rounded to 256.
#
# Both averages of ``mpich`` are right, because it divides before it adds, as PyTorch documents ``AVG`` and as NCCL
# does. gloo adds first, and its sum of 120,000 exceeds the largest number of ``float16``, 65,504. The price of
# dividing first is that the smallest numbers of a type can become 0.
#
# If a sum must not depend on the length of the tensor, exchange the bytes for these dtypes at every length:
# ``Transport::collective`` of the frame does it with ``exchange`` alone. In an all-reduce, each rank then receives the
# whole input of every other rank. The backend keeps MPI's algorithms for long tensors, because long gradients would pay
# most for this.
#
# Other libraries
# ---------------
#
# Not every library accepts functions as MPI does. Who reduces the missing pairs then depends on what yours has:
#
# - *It moves bytes only.* Let ``Transport::collective`` reduce until you write an algorithm of your own.
# - *It has collectives, but lacks a pair and takes no functions.* Gather with it and call ``op.reduce``.
# - *It works on a device,* whose memory ``op.reduce`` cannot read. Gather, and reduce with operators of the device in
#   the stream of the communication, or refuse before the launch, as ``simccl`` of :doc:`/accelerators/five-steps` does.
#
# An error is the last resort, because a transport can only raise it after the call has begun, which ends the group.
#
# .. admonition:: For reference: the reductions of NCCL, UCX and libfabric
#    :collapsible: closed
#
#    .. list-table::
#       :header-rows: 1
#
#       * - library
#         - what it reduces
#       * - NCCL 2.30
#         - ``ncclFloat16``, ``ncclBfloat16``, ``ncclFloat8e4m3`` and ``ncclFloat8e5m2``; ``ncclAvg``;
#           ``ncclRedOpCreatePreMulSum`` for ``PREMUL_SUM``. It has no complex types, no integers of 16 bits,
#           no bit operations and no user-defined functions.
#       * - UCX
#         - nothing: it moves bytes. UCC, which can use UCX, has collectives with reductions.
#       * - libfabric
#         - ``fi_allreduce``, where the provider has it. ``fi_query_collective`` says whether it does, for a dtype
#           and an operation.
#
# .. admonition:: After this page you have decided
#
#    - who reduces each pair of a dtype and a ``ReduceOp``;
#    - how all ranks get the same bits, also from a NaN;
#    - whether ``AVG`` divides before or after the sum;
#    - how often a sum of floats of 8 or 16 bits is rounded, and up to which size;
#    - what a call does if your library lacks the reduction: gather and reduce, or raise an error.
#
# Not run here: these libraries, for which the table follows their headers and documentation.
