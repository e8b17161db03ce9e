"""
Tensors of every kind
=====================

A transport moves bytes, and a program passes tensors: transposed, empty, of half precision, or expanded
from one element. A backend that takes their memory as it is adds elements that do not belong together, and no error
appears. This page shows what the frame does instead, and what a library that reduces numbers itself must do as well.

The class ``Arguments`` turns the tensors of a call into pieces of bytes, and copies the results back:

.. diagram:: right/tensors_of_every_kind/diagram

Checking the arguments
----------------------

A wrong argument is the error of one rank, and should not harm the others. So ``Arguments`` checks all arguments before
the frame gives the operation its number and calls the transport. The error is a ``ValueError``, and the group remains
usable: the other ranks wait until this one repeats the call with correct arguments, or until their deadline, which ends
the group.

All tensors of a call must be on the CPU and have one dtype, a list must have one tensor for each rank, and only an
all-reduce with ``SUM`` may have sparse tensors. An output must not overlap another output, or itself, as
``torch.ones(1).expand(2)`` does.

Which dtype has which reduction
-------------------------------

A ``ReduceOp`` is an argument, too. There are nine, and no dtype has all of them. So when a call reduces, the frame
first tests its pair of dtype and operation with this function:

.. listing:: extension/frame/c10d_frame/include/frame/reductions.hpp
   :part: defined

The frame defines the pairs that :doc:`/tutorial/options-and-reductions` lists for ``store``. With any other pair,
a call raises an error:
"""

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

dist.init_process_group("store", store=dist.HashStore(), rank=0, world_size=1)
try:
    dist.reduce(torch.ones(2, dtype=torch.complex64), 0, dist.ReduceOp.MAX)
except ValueError as error:
    print(str(error).splitlines()[0])
dist.destroy_process_group()

# %%
# If your library reduces numbers itself, it must give the same results up to rounding, or refuse, and all ranks
# must get the same bits. Four points are easily wrong:
#
# - ``AVG`` "divides values by the world size before summing across ranks", according to the docstring of
#   ``ReduceOp``, so the average of large numbers does not overflow. NCCL and the frame do so for floating-point
#   numbers, whereas gloo divides the sum, as :doc:`/library/types-and-reductions` shows.
# - ``PREMUL_SUM`` multiplies each input by a factor first. The frame does that before it calls the
#   transport, so a library only adds.
# - Floating-point types of 8 and 16 bits are combined as ``float`` and rounded once. A library that rounds
#   after each addition has larger errors with more ranks.
# - ``MIN`` and ``MAX`` of a number and NaN are NaN in the frame, as in ``torch.minimum`` and ``torch.maximum``.
#   PyTorch does not promise that: NCCL, for example, returns the number. So your library may return either, if all
#   ranks get the same bits.
#
# Leave what your library lacks to ``op.reduce``, the function of the frame: exchange the pieces, and call it
# with all of them in the order of the ranks.
#
# .. admonition:: Sparse tensors
#    :collapsible: closed
#
#    An all-reduce with ``SUM`` accepts sparse tensors, for which the frame calls ``exchange``, so that each rank gets
#    the indices and values of all.
#
# Bug: reading the memory instead of the tensor
# ---------------------------------------------
#
# Even if all arguments are correct, the elements of a tensor may lie in memory in another order, or with gaps. It is
# tempting to give the library ``data_ptr`` and the number of elements. The library then reads what lies in memory, and
# not the elements of the tensor. The function below has this bug, in Python:
#
# .. listing:: gallery/right/tensors_of_every_kind/memory_of_a_tensor.py
#    :part: mistake
#
# Two ranks reduce the same numbers with it and with the all-reduce of ``store``, so each element of the
# tensor must double:
#
# .. listing:: gallery/right/tensors_of_every_kind/memory_of_a_tensor.py
#    :part: use
#
# The worker then tries elements that overlap in memory, as an input and as an output, and a tensor without
# elements:
#
# .. listing:: gallery/right/tensors_of_every_kind/memory_of_a_tensor.py
#    :part: other

from launcher import launch

output = launch("tensors_of_every_kind/memory_of_a_tensor.py", ranks=2, show=False)
print(output[0], end="")

# sphinx_gallery_start_ignore
assert output[0] == output[1]
# sphinx_gallery_end_ignore

# %%
# Both ranks print the same. With ``all_reduce_of_memory``, the tensors that are transposed on both ranks are right by
# luck, because their elements have the same order in memory, so a test of this case alone passes. If only one tensor
# is transposed, the ranks add elements that do not belong together, which gives 5 in place of 6 and 4. In place of
# the first column, 1 and 3, the bug doubles 1 and 2, although the 2 is in the second column.
#
# The fix is a copy, because a transport can fill only contiguous memory. The method ``output`` checks a tensor and
# returns a piece for the transport: the tensor's own memory, or a copy if the elements are not there in order.
#
# .. admonition:: ``output``
#    :collapsible: closed
#
#    The table explains the names of ``output`` in the order of the listing:
#
#    .. list-table::
#       :header-rows: 1
#
#       * - name
#         - what it is
#       * - ``in_place``
#         - the tensor is an input, too, so a copy must contain its elements
#       * - ``check``, ``require``
#         - refuse the tensor: for its device, layout or dtype, and if a condition is false
#       * - ``may_overlap``
#         - whether elements of one tensor, or of two, may share memory; an overlap of two tensors is not found if one
#           of them has gaps in memory, such as a slice with a step
#       * - ``results``
#         - the outputs of the call
#       * - ``is_plain``
#         - whether the memory of a tensor contains its elements in their order, and nothing else; false with PyTorch's
#           conjugate or negative bit, too, where it contains other values
#       * - ``keep``
#         - keeps a tensor alive until the operation ends, and returns its memory
#       * - ``copies_``
#         - the outputs that ``is_plain`` denies, each with the copy that the transport fills
#
#    .. listing:: extension/frame/c10d_frame/include/frame/arguments.hpp
#       :part: output
#
# A copy does not help if elements of an output overlap: there is no place for all results, so the call is an error. As
# an input, such a tensor is fine, as ``gathered`` shows.
#
# The last call reduces a tensor without elements. Each rank must still take part, because the ranks compare what they
# call.
#
# When the transport has filled the copy, and before the operation counts as ended, ``finish`` copies the result into
# the tensor:
#
# .. not-executed::
#    :partly:
#
#    No sample of this page reduces a sparse tensor.
#
#    .. listing:: extension/frame/c10d_frame/include/frame/arguments.hpp
#       :part: finish
#
# Any thread may run ``finish``, and for one kind of program that matters. Programs that serve a model call collectives
# in ``torch.inference_mode``. A tensor made in this mode refuses in-place operations outside of it, and each thread has
# a mode of its own. So a plain ``copy_`` in a thread of the backend fails with ``Inplace update to inference tensor
# outside InferenceMode is not allowed``. Under ``at::AutoDispatchBelowADInplaceOrView``, the copy is correct in both
# modes, and hidden from autograd.
#
# Exercise
# --------
#
# A test with transposed tensors on both ranks does not find the bug. Write a function that tests an
# all-reduce on two ranks with several layouts, and returns those that fail. It must also find a changed
# element outside the tensor. Try it with the bug, with an all-reduce of ``tensor.contiguous()``, and with
# ``dist.all_reduce``.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Rank 0 has the layout, and rank 1 has the same elements in a contiguous tensor. The function compares
#    whole matrices, and so also the elements outside the tensor.
#
#    .. listing:: gallery/right/tensors_of_every_kind/wrong_layouts.py
#       :part: solution
#
# The solution tests the three functions:

output = launch("tensors_of_every_kind/wrong_layouts.py", ranks=2)

# %%
# Only the all-reduce of ``store`` is right for every layout. ``all_reduce_of_copy`` reduces ``tensor.contiguous()``.
# Its sums are right, but nothing copies them back into the tensor of rank 0.
#
# .. admonition:: After this page you have decided
#
#    - when your backend checks arguments, so that a wrong one leaves the group usable;
#    - which pairs of dtype and ``ReduceOp`` your library reduces, which the frame, and which are refused;
#    - whether ``AVG`` divides before the sum, and what ``MIN`` and ``MAX`` do with NaN;
#    - what becomes of a tensor that is not contiguous, and when its result is copied back;
#    - how a thread of yours writes results into inference tensors.
#
# Not run here: NCCL, about which the text follows its source.
