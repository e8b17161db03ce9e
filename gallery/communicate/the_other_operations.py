"""
The other operations
====================

After this page you can build the other collectives from the same steps, and match messages with
their receives. You can also handle the layouts, dtypes, roots and sizes that PyTorch passes.

``c10d::Backend`` has more than twenty methods that communicate, and ``allreduce`` is one of them.
``shm`` needs no new protocol for the other collectives. Eight functions return the steps of all
of them. The class ``Call`` turns the tensors of a call into bytes.

.. diagram:: communicate/other-operations

What a rank writes and reads
----------------------------

In :doc:`step-by-step`, the all-reduce of a small tensor is a call of ``pipeline`` with two functions:
what a rank writes into its slot, and what it reads from the slots. The other collectives differ in these
two functions:

.. list-table::
   :header-rows: 1

   * - operation
     - a rank writes
     - a rank reads
   * - ``broadcast``
     - the root: its tensor
     - the slot of the root
   * - ``scatter``
     - the root: a block for each rank
     - its own block in the slot of the root
   * - ``all_gather``
     - its tensor
     - all slots
   * - ``gather``
     - its tensor
     - the root: all slots
   * - ``reduce_scatter``
     - a block for each other rank
     - its own block in all other slots
   * - ``all_to_all``
     - a block for each other rank
     - its own block in all other slots
   * - ``barrier``
     - nothing
     - nothing

A slot contains data for all ranks, or a *block* for each rank. ``scatter`` shows both the root
and the blocks:

.. literalinclude:: /../extension/shm_collectives/src/collectives.cpp
   :language: cpp
   :caption: extension/shm_collectives/src/collectives.cpp
   :start-after: // [scatter]
   :end-before: // [/scatter]

``reduce`` is an all-reduce in which only the root has an output. An argument of
``pipeline`` says for whom a rank waits after the first step: for everyone, or for one rank, such as
the root. The rest is the same for all collectives: the comparison of the notes, the errors, and
the asynchronous work.

One operation, several methods
------------------------------

PyTorch has several methods for one operation. The output of an all-gather is a list with a tensor
for each rank, or one large tensor. The methods differ, but the steps are the same:

.. literalinclude:: /../extension/shm_collectives/src/operations.cpp
   :language: cpp
   :caption: extension/shm_collectives/src/operations.cpp
   :start-after: // [all-gathers]
   :end-before: // [/all-gathers]

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
    dist.all_reduce: [one],
    dist.reduce: [one, 0],
    dist.broadcast: [one, 0],
    dist.broadcast_object_list: [[0]],
    dist.scatter: [one, [one]],
    dist.gather: [one, [one]],
    dist.all_gather: [[one], one],
    dist.all_gather_single: [one, one],
    dist.all_gather_object: [[0], 0],
    dist.reduce_scatter: [one, [one]],
    dist.reduce_scatter_single: [one, one],
    dist.all_to_all: [[one], [one]],
    dist.all_to_all_single: [one, one],
    dist.barrier: [],
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

# sphinx_gallery_start_ignore
assert shm_collectives.__doc__
assert sum(map(len, reached.values())) == len(CALLS), reached
assert [len(names) for names in reached.values()] == [1, 1, 2, 1, 1, 3, 2, 2, 1], reached
assert len(reached["all_gather"]) == 3
# sphinx_gallery_end_ignore

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
# .. literalinclude:: /../extension/shm_collectives/src/reductions.cpp
#    :language: cpp
#    :caption: extension/shm_collectives/src/reductions.cpp
#    :start-after: // [defined]
#    :end-before: // [/defined]
#
# The next cell tries dtypes of each row with every operation of a column:

from torch.distributed import ReduceOp

dist.init_process_group("shm", store=dist.HashStore(), rank=0, world_size=1)
DTYPES = {
    "float8 to float64": [torch.float8_e4m3fn, torch.bfloat16, torch.float16, torch.float64],
    "int8 to uint64": [torch.int8, torch.int64, torch.uint8, torch.uint64],
    "bool": [torch.bool],
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
header = ["SUM, PRODUCT", "AVG, PREMUL_SUM", "MIN, MAX", "BAND, BOR, BXOR"]
show_table(["dtype", *header], rows)
print(error_of(torch.complex64, ReduceOp.MAX))
dist.destroy_process_group()

# sphinx_gallery_start_ignore
assert [row[1:] for row in rows] == [
    ["yes", "yes", "yes", "no"],
    ["yes", "no", "yes", "yes"],
    ["yes", "no", "yes", "yes"],
    ["yes", "yes", "no", "no"],
], rows
# sphinx_gallery_end_ignore

# %%
# The error is a ``ValueError`` in the call, so the group remains usable. Floating-point types of 8
# and 16 bits are combined as ``float``, and the result is rounded once.
# ``tests/shm/test_values.py`` compares the values of reductions on up to eight ranks.
#
# ``AVG`` divides the sum by the number of ranks, and ``PREMUL_SUM`` first multiplies each input by
# a factor, and rounds the product to the dtype. FSDP2 passes them for gradients of ``float32`` and ``bfloat16``. A backend that ran
# them as ``SUM`` would return wrong gradients silently.
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
# .. literalinclude:: /../gallery/communicate/workers/memory_of_a_tensor.py
#    :language: python
#    :caption: gallery/communicate/workers/memory_of_a_tensor.py
#    :start-after: # [mistake]
#    :end-before: # [/mistake]
#
# Two ranks reduce the same numbers with the mistake, and with the all-reduce of ``shm``. Each
# element must become twice as large:
#
# .. literalinclude:: /../gallery/communicate/workers/memory_of_a_tensor.py
#    :language: python
#    :caption: gallery/communicate/workers/memory_of_a_tensor.py
#    :start-after: # [use]
#    :end-before: # [/use]
#
# The worker then tries three other layouts: elements that overlap in memory, as an input and
# as an output, and a tensor without elements:
#
# .. literalinclude:: /../gallery/communicate/workers/memory_of_a_tensor.py
#    :language: python
#    :caption: gallery/communicate/workers/memory_of_a_tensor.py
#    :start-after: # [other]
#    :end-before: # [/other]

from launcher import launch

output = launch("workers/memory_of_a_tensor.py", ranks=2, show=False)
print(output[0], end="")

# sphinx_gallery_start_ignore
assert output[0] == output[1]
mistake, cure = output[0].split("all_reduce\n")
right = ["[[2, 6], [4, 8]]", "[[2, 6], [4, 8]]", "[[2, 2], [6, 4]]"]
wrong = [right[0], "[[2, 5], [5, 8]]", "[[2, 4], [3, 4]]"]
assert [line.partition(": ")[2].strip() for line in mistake.splitlines()[1:]] == wrong, mistake
assert [line.partition(": ")[2].strip() for line in cure.splitlines()[:3]] == right, cure
assert "gathered: [[1.0, 1.0], [1.0, 1.0]]\nall_reduce cannot write" in cure
# sphinx_gallery_end_ignore

# %%
# Both ranks print the same. With the mistake, the first case is right by luck, because the elements
# have the same order in memory on both ranks. A test of this case alone passes. In the second
# case, the ranks add elements that do not belong together. In the third case, the mistake also
# changes an element outside the column. No case raises an error.
#
# The cure is a contiguous copy of each tensor that is not contiguous. ``is_plain`` is also false
# for a tensor with PyTorch's conjugate or negative bit, because its memory contains other values.
# ``Call::output`` keeps the tensor and the copy:
#
# .. literalinclude:: /../extension/shm_collectives/src/call.cpp
#    :language: cpp
#    :caption: extension/shm_collectives/src/call.cpp
#    :start-after: // [layouts]
#    :end-before: // [/layouts]
#    :dedent: 2
#
# After the last step, ``finish`` copies the result into the tensor. If elements of an output
# overlap, there is no place for all results, so the call is an error. Such a tensor can be an
# input. A tensor without elements takes one step, too, because the ranks compare their notes.
#
# The root and the other rank
# ---------------------------
#
# ``opts.rootRank`` is a rank of the group. The arguments ``src`` and ``dst`` of Python are ranks of
# the world, and PyTorch converts them. ``group_src`` and ``group_dst`` are ranks of the group. In
# the next worker, ranks 1 and 2 of the world are ranks 0 and 1 of a group. The numbers that they
# scatter name both ranks: rank 1 sends 102 to rank 2.
#
# .. literalinclude:: /../gallery/communicate/workers/roots_and_messages.py
#    :language: python
#    :caption: gallery/communicate/workers/roots_and_messages.py
#    :start-after: # [roots]
#    :end-before: # [/roots]
#
# Tags and sources
# ----------------
#
# A message has a *tag*, and its other rank is a rank of the group, too. Each pair of ranks has a
# ring of slots in each direction. So a message takes no step of the collectives. For each message
# that comes in, ``shm`` looks for the first receive that fits:
#
# .. literalinclude:: /../extension/shm_collectives/src/point_to_point.cpp
#    :language: cpp
#    :caption: extension/shm_collectives/src/point_to_point.cpp
#    :start-after: // [first-receive]
#    :end-before: // [/first-receive]
#    :dedent: 2
#
# If a receive waits for another tag of the sending rank, the message is copied and kept. A later
# message can then overtake it. Messages with the same tag stay in order. ``recvAnysource`` takes a message of
# any rank, and ``Work::sourceRank`` returns that rank:
#
# .. literalinclude:: /../gallery/communicate/workers/roots_and_messages.py
#    :language: python
#    :caption: gallery/communicate/workers/roots_and_messages.py
#    :start-after: # [messages]
#    :end-before: # [/messages]
#
# Calls that belong together
# --------------------------
#
# A send of ``shm`` does not end before the other rank calls a receive. If all ranks send to their
# neighbours first and wait, nobody receives. ``batch_isend_irecv`` begins all messages before the
# program waits. If ``supportsCoalescing`` returns true, it calls ``startCoalescing`` first. ``shm``
# then collects the operations, and ``endCoalescing`` returns one ``Work`` for all:
#
# .. literalinclude:: /../gallery/communicate/workers/roots_and_messages.py
#    :language: python
#    :caption: gallery/communicate/workers/roots_and_messages.py
#    :start-after: # [batch]
#    :end-before: # [/batch]
#
# Sizes that differ
# -----------------
#
# The note of an operation contains the size of its tensor. Different sizes are therefore an error
# on all ranks, as :doc:`timeouts-and-lost-ranks` shows. An all-to-all needs more: each pair of ranks
# may exchange a different number of bytes. So each block begins with the number of bytes that its rank
# sends there, and the number that it expects from there. At the end of the worker, rank 0 sends
# two rows to rank 1, which expects one:
#
# .. literalinclude:: /../gallery/communicate/workers/roots_and_messages.py
#    :language: python
#    :caption: gallery/communicate/workers/roots_and_messages.py
#    :start-after: # [sizes]
#    :end-before: # [/sizes]

output = launch("workers/roots_and_messages.py", ranks=3)

# sphinx_gallery_start_ignore
sizes = "in all_to_all, rank 0 sends 8 bytes to rank 1, which expects 4\n"
assert output[0].startswith("tag 6: 20\ntag 5: 10\ntag 5: 30\nreceived from: [1, 2]\n")
for rank, text in enumerate(output):
    left = (rank - 1) % 3
    assert text.endswith(f"1 work, received {left} from rank {left}\n{sizes}")
    refused = "broadcast: root 2 is not a rank of a group of 2"
    if rank:
        assert text.startswith(f"src=1: 10{rank}\ngroup_src=1: 20{rank}\nBackend shm: {refused}")
# sphinx_gallery_end_ignore

# %%
# ``src=1`` and ``group_src=1`` are different ranks. A program that fills in the options itself and
# writes the rank of the world gets an error only if the group has no such rank. In the group of
# the worker, a root of 1 would be rank 2 of the world, without an error.
#
# Exercise
# --------
#
# The all-gather of ``shm`` takes tensors of one size. Suppose that each rank has a tensor of
# a different size, and that all ranks know all sizes. Write a function that gathers these tensors
# with one collective.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    An all-gather is an all-to-all in which a rank sends the same tensor to everyone. The pieces
#    of an all-to-all may have any size.
#
#    .. literalinclude:: /../gallery/communicate/workers/gather_other_sizes.py
#       :language: python
#       :caption: gallery/communicate/workers/gather_other_sizes.py
#       :start-after: # [solution]
#       :end-before: # [/solution]
#
#    It has a price: a rank writes its tensor once for each other rank, and not once for all.
#
# Two ranks try ``all_gather`` first, and then the solution:

output = launch("workers/gather_other_sizes.py", ranks=2)

# sphinx_gallery_start_ignore
for text in output:
    refused, gathered = text.splitlines()
    assert "all_gather takes tensors of one size" in refused
    assert gathered == "[[0], [1, 1]]"
# sphinx_gallery_end_ignore

# %%
# All operations are built. The next page, :doc:`train-with-it`, uses them.
