"""
Tensors of every kind
=====================

After this page you can handle the tensors that PyTorch passes: lists and large tensors,
each dtype with its reductions, and elements that are not next to each other in memory.

The steps of :doc:`the-other-operations` move bytes, and a program passes tensors. The memory of a
tensor can contain more than its elements, or contain them in another order. The class
``Arguments`` turns the tensors of a call into bytes, and copies the result back:

.. diagram:: communicate/tensors_of_every_kind/diagram

One operation, several methods
------------------------------

PyTorch has several methods for one operation. The output of an all-gather is a list with a tensor
for each rank, or one large tensor. The methods differ, but both run the all-gather of
:doc:`build-a-collective`:

.. listing:: extension/frame/backend.hpp
   :part: all-gathers

``input`` and ``output`` return the bytes of one tensor. ``outputs`` returns those of a list, and
``pieces`` cuts the bytes of a large tensor. A method such as ``allreduce_coalesced`` receives
several tensors. ``shm`` begins one operation for each of them, and returns one ``Work`` for all.

After ``abort``, each operation fails with an error that contains its name. The next cell uses
this to find the operation that a Python function reaches, in a group of one rank:
"""

import re

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"
from result_table import show_table

dist.init_process_group("shm", store=dist.HashStore(), rank=0, world_size=1)
dist.group.WORLD.abort()
one = torch.ones(1)
CALLS = {
    dist.all_gather: [[one], one],
    dist.all_gather_single: [one, one],
    dist.all_gather_object: [[0], 0],
    dist.reduce_scatter: [one, [one]],
    dist.reduce_scatter_single: [one, one],
    dist.all_to_all: [[one], [one]],
    dist.all_to_all_single: [one, one],
}
reached = {}
for function, arguments in CALLS.items():
    try:
        function(*arguments)
    except dist.DistBackendError as error:
        name = re.search(r"Backend shm cannot run (\w+)", str(error))[1]
        reached.setdefault(name, []).append(f"``{function.__name__}``")
show_table(["operation", "Python functions"], [[x, ", ".join(y)] for x, y in reached.items()])
dist.destroy_process_group()

# %%
# :doc:`/tutorial/every-operation` lists the method that each Python function calls, with its
# declaration and options.
#
# Which dtype has which reduction
# -------------------------------
#
# ``ReduceOp`` has nine operations. None of the dtypes has all of them in ``shm``. The constructor
# of a reduction tests the pair with this function, before the operation gets its number:
#
# .. listing:: extension/frame/reductions.hpp
#    :part: defined
#
# The next cell tries dtypes of each row with every operation of a column:

from torch.distributed import ReduceOp

dist.init_process_group("shm", store=dist.HashStore(), rank=0, world_size=1)
DTYPES = {
    "float8 to float64": [torch.float8_e4m3fn, torch.bfloat16, torch.float16, torch.float64],
    "int8 to uint64, bool": [torch.int8, torch.int64, torch.uint8, torch.uint64, torch.bool],
    "complex64, complex128": [torch.complex64, torch.complex128],
}
OPERATIONS = [
    [ReduceOp.SUM, ReduceOp.PRODUCT],
    [ReduceOp.AVG, ReduceOp.PREMUL_SUM(0.5)],
    [ReduceOp.MIN, ReduceOp.MAX],
    [ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR],
]


def error_of(dtype, operation):
    """Return the error of a reduction, or an empty text if there is none."""
    try:
        dist.reduce(torch.ones(2).to(dtype), 0, operation)
    except ValueError as error:
        return str(error).splitlines()[0]
    return ""


rows = []
for name, dtypes in DTYPES.items():
    rows.append([name])
    for column in OPERATIONS:
        errors = {bool(error_of(dtype, op)) for dtype in dtypes for op in column}
        rows[-1].append("/".join("no" if error else "yes" for error in errors))
show_table(["dtype", "SUM, PRODUCT", "AVG, PREMUL_SUM", "MIN, MAX", "BAND, BOR, BXOR"], rows)
print(error_of(torch.complex64, ReduceOp.MAX))
dist.destroy_process_group()

# %%
# The error is a ``ValueError`` in the call, so the group remains usable. Floating-point types of 8
# and 16 bits are combined as ``float``, and the result is rounded once.
# ``tests/shm/test_values.py`` compares the values of reductions on up to eight ranks.
#
# ``AVG`` divides the sum by the number of ranks, and ``PREMUL_SUM`` first multiplies each input by
# a factor, and rounds the product to the dtype. FSDP2 passes them for gradients of ``float32`` and
# ``bfloat16``. A backend that ran them as ``SUM`` would return wrong gradients silently.
#
# ``all_reduce`` of Python passes a complex tensor as a view of real numbers. ``reduce`` passes the
# complex tensor itself, as the message shows.
#
# A mistake: to read the memory instead of the tensor
# ---------------------------------------------------
#
# A backend can get the bytes of a tensor from ``data_ptr`` and the number of elements. This is
# wrong if the elements are not next to each other, or are in another order. The function below
# makes the mistake in Python:
#
# .. listing:: gallery/communicate/tensors_of_every_kind/memory_of_a_tensor.py
#    :part: mistake
#
# Two ranks reduce the same numbers with the mistake, and with the all-reduce of ``shm``. Each
# element of the reduced tensor must become twice as large:
#
# .. listing:: gallery/communicate/tensors_of_every_kind/memory_of_a_tensor.py
#    :part: use
#
# The worker then tries three other layouts: elements that overlap in memory, as an input and
# as an output, and a tensor without elements:
#
# .. listing:: gallery/communicate/tensors_of_every_kind/memory_of_a_tensor.py
#    :part: other

from launcher import launch

output = launch("tensors_of_every_kind/memory_of_a_tensor.py", ranks=2, show=False)
print(output[0], end="")

# sphinx_gallery_start_ignore
assert output[0] == output[1]
# sphinx_gallery_end_ignore

# %%
# Both ranks print the same. With the mistake, the first case is right by luck, because the elements
# have the same order in memory on both ranks. A test of this case alone passes. In the second
# case, the ranks add elements that do not belong together. In the third case, the mistake also
# changes an element outside the column. No case raises an error.
#
# The cure is a contiguous copy of each tensor that is not contiguous. ``is_plain`` is also false
# for a tensor with PyTorch's conjugate or negative bit, because its memory contains other values.
# ``Arguments::output`` keeps the tensor and the copy:
#
# .. listing:: extension/frame/arguments.hpp
#    :part: layouts
#
# After the last step, ``finish`` copies the result into the tensor. If elements of an output
# overlap, there is no place for all results, so the call is an error. Such a tensor can be an
# input. A tensor without elements takes one step, too, because the ranks compare their notes.
#
# Exercise
# --------
#
# A test with transposed tensors on both ranks does not find the mistake. Write a function that
# tests an all-reduce on two ranks with several layouts, and returns those that fail. The function
# must also find a changed element outside the tensor. Try it with the mistake, with an all-reduce
# of ``tensor.contiguous()``, and with ``dist.all_reduce``.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Rank 0 has the layout, and rank 1 has the same elements in a contiguous tensor. The function
#    compares whole matrices, and so also the elements outside the tensor.
#
#    .. listing:: gallery/communicate/tensors_of_every_kind/wrong_layouts.py
#       :part: solution
#
# The solution tests the three functions:

output = launch("tensors_of_every_kind/wrong_layouts.py", ranks=2)

# %%
# ``all_reduce_of_copy`` reduces ``tensor.contiguous()``. Its sums are right, but nobody copies them
# back into the tensor of rank 0. All operations are built. The next page, :doc:`train-with-it`,
# uses them.
