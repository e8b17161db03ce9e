"""
What your backend must implement
================================

After this page you can plan a backend: you know which of its operations the features of
PyTorch call, and how to record them for your own program.

.. diagram:: tutorial/what_a_backend_needs/diagram

Record the calls
----------------

PyTorch's profiler records each collective and each message of a process group, as an event
whose name begins with ``c10d::``. So the names of these events are enough:

.. listing:: gallery/tutorial/shared/calls_of_features.py
   :part: record

A reduction also has a ``ReduceOp``. It is an argument of the operator that the dispatcher
calls, so a dispatch mode sees it. Since PyTorch 2.15, Python can read it:

.. listing:: gallery/tutorial/shared/calls_of_features.py
   :part: reductions

The worker runs small examples of the features on two ranks with gloo, a backend of
PyTorch.

.. note::

   The function ``launch`` is a helper of this site. It runs the ``torchrun`` command that
   it prints, and collects what each rank writes, in Python and in C++. It puts the number
   of the rank before each line and sorts the lines by rank. It sets ``OMP_NUM_THREADS=1``
   for the ranks, makes gloo and RPC use the loopback interface, turns Python warnings
   into errors, and fails if a rank writes
   anything unexpected to stderr. With ``show=False`` it prints only the command.
"""

import json
import os
import tempfile

from launcher import PROFILER, launch

with tempfile.TemporaryDirectory() as folder:
    os.environ |= {"SHARED_FOLDER": folder, "MORE_CALLS": "yes"}
    reports = launch(
        "shared/calls_of_features.py",
        ranks=2,
        expected_stderr=f"{PROFILER}|falling back with allgather",
        show=False,
    )

# %%
# The tensors of this run are on a CPU, and the backend is gloo. A second run, further below,
# shows what differs on an accelerator.
#
# Each row is a method of ``c10d::Backend`` to override, and each column a feature that called
# the method in this run, on any rank. The last row has the reductions. *DCP* is a distributed
# checkpoint, *DTensor* is the basis of tensor parallelism, and *objects* are the collectives on
# Python objects.

from result_table import show_table

by_rank = [json.loads(report) for report in reports]
calls = {name: by_rank[0][name] for name in by_rank[0] if "_" in name}
features = {
    name: set().union(*(report[name] for report in by_rank))
    for name in by_rank[0]
    if name not in calls
}
names = sorted(set().union(*features.values()), key=lambda name: name.strip("_"))
ops = [name for name in names if name.startswith("ReduceOp.")]
methods = [name for name in names if name not in ops]
rows = [[method, *("✓" if method in features[x] else "–" for x in features)] for method in methods]
if ops:
    used = [[op.removeprefix("ReduceOp.") for op in ops if op in features[x]] for x in features]
    rows.append(["ReduceOp", *(", ".join(some) or "–" for some in used)])
show_table(["method", *features], rows)

# %%
# The names are those that PyTorch 2.13 has. Since PyTorch 2.14, ``_allgather_base`` is also
# called ``all_gather_single``, ``allgather_into_tensor_coalesced`` is also called
# ``all_gather_single_coalesced``, and so on. You can override either name.
#
# A backend that always sums gives wrong gradients under FSDP2, which averages. Before the first
# batch, the ranks of a pipeline vote with ``MIN`` on whether they know the shapes of all messages.
#
# Operations without a column
# ---------------------------
#
# A program that uses a feature needs all operations of the feature's column. With other
# options, a feature can call more of them. Some operations belong to no feature of the table. The
# worker runs these functions, too:
#
# .. listing:: gallery/tutorial/shared/calls_of_features.py
#    :part: calls

for name, methods in calls.items():
    print(f"{name:23} {', '.join(methods) or '–'}")

# %%
# ``alltoall_base`` is for programs that exchange parts of tensors, for example between the
# experts of a model.
#
# What an accelerator changes
# ---------------------------
#
# If you have an accelerator, you need to know what its backend must have in addition. So the
# worker runs the same features and functions again, on the simulated device of
# :doc:`/accelerators/device`. Its only backend is ``simccl``, and each rank passes its device as
# ``device_id`` to ``init_process_group``. Three methods have no operator, and therefore no event,
# so the worker notes them where Python calls them:
#
# .. listing:: gallery/tutorial/shared/calls_of_features.py
#    :part: others
#
# The table has the rows that differ between the two runs:

with tempfile.TemporaryDirectory() as folder:
    os.environ |= {"SHARED_FOLDER": folder, "ON_ACCELERATOR": "yes"}
    reports = launch(
        "shared/calls_of_features.py", ranks=2, expected_stderr=PROFILER, show=False
    )

there = [json.loads(report) for report in reports]
rows = []
for name in there[0]:
    here, now = [set().union(*(report[name] for report in run)) for run in (by_rank, there)]
    changes = [", ".join(sorted(some)) or "–" for some in (now - here, here - now)]
    if now != here:
        rows.append([name, *changes])
show_table(["feature or function", "calls only on the device", "calls only on the CPU"], rows)

# %%
# The differences have these reasons:
#
# * A pipeline sends and receives in batches. PyTorch calls ``startCoalescing`` and
#   ``endCoalescing`` around a batch if ``supportsCoalescing`` returns true. gloo's returns false.
# * To shard another dimension, DTensor exchanges parts. On a CPU, it gathers the tensor.
# * The groups of a mesh are split from the default group, because that knows its device.
#   :doc:`/accelerators/groups-and-meshes` shows what the ranks then call.
#
# Everything else is equal, including the reductions. So a backend for an accelerator needs ``MIN``
# and ``MAX`` as well, because pipelining and comparisons of DTensors request ``MIN``, and loss
# parallelism requests ``MAX``.
#
# What else a backend needs
# -------------------------
#
# A backend needs more than operations:
#
# * ``getBackendName``, because every error message contains it.
# * ``Work::wait`` and ``Work::getFuture``. The profiler records no methods of ``Work``, so the
#   table does not show them.
# * Tensors of ``int64`` and ``uint8``. The object collectives pickle objects into them.
# * ``shutdown``, which ``destroy_process_group`` calls.

# %%
# What zeros do
# -------------
#
# The *dummy* is the backend that you write in :doc:`step-1-subclass-backend` and install in
# :doc:`step-3-build-and-install`. It has all-reduce and all-gather only, and sets every
# output to zero. Some features can begin with these two operations. What they do with the
# zeros shows how they use the collectives.
#
# .. listing:: gallery/tutorial/what_a_backend_needs/what_zeros_do.py

launch("what_a_backend_needs/what_zeros_do.py", ranks=2)

# %%
# ``DistributedDataParallel`` first all-gathers the number of parameters. All ranks must have as
# many as rank 0. It receives zeros, from rank 0 as well, and raises an error because it
# checks what it receives.
#
# Since PyTorch 2.15, ``all_gather_object`` calls ``all_gather_single``, which the dummy
# does not have. Before, it called ``allgather`` and received zeros as the sizes of the
# objects. It raised an ``EOFError``, because zero bytes contain no object.
#
# The third case checks nothing. The gradients are zero, the program ends without an error,
# and a model that is trained like this never learns. A wrong backend can look the same. Test
# the values, and not only that the program ends.
#
# The build did not run the features on hardware, nor FSDP2 with a factor to divide by, which
# needs ``ReduceOp.PREMUL_SUM``.
