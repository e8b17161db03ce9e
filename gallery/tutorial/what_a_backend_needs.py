"""
What your backend must implement
================================

A program ends with an error at the first method that its backend lacks, but no feature of PyTorch calls all methods.
Look up here which ones each feature calls, so that you can begin with those that your programs need. The tables come
from a program that runs small examples of the features on two ranks. You can also record your own program.

.. diagram:: tutorial/what_a_backend_needs/diagram

Methods by feature
------------------

Each row is a method of ``c10d::Backend`` to override, and each column a feature. A ✓ means that the feature
called the method on at least one rank. The last row has the reductions. *DCP* is a distributed checkpoint, *DTensor*
is the basis of tensor parallelism, and *objects* are the collectives on Python objects. The tensors of this run are
on a CPU, and the backend is gloo, PyTorch's own for CPUs:
"""

from launcher import launch
from result_table import show_table
from shared.needed_methods import (
    calls_of_functions,
    differences,
    methods_of_features,
    run_features,
)

on_cpu = run_features(MORE_CALLS="yes")
show_table(*methods_of_features(on_cpu))

# %%
# A program that uses a feature needs all methods of its column. For FSDP2, for example, these are ``_allgather_base``
# and ``_reduce_scatter_base``, with the reduction ``AVG``. With other options, a feature can call more of them.
#
# The reductions matter as much as the methods. A backend that always sums gives wrong gradients under FSDP2, because
# FSDP2 averages.
#
# The names are those that PyTorch 2.13 has. Since PyTorch 2.14, ``_allgather_base`` is also called
# ``all_gather_single``, ``allgather_into_tensor_coalesced`` is also called
# ``all_gather_single_coalesced``, and so on. You can override either name.
#
# Methods by function
# -------------------
#
# A program may also call functions that belong to no feature of the table, and some of them need further
# methods. The program of the table runs these, too:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/tutorial/shared/calls_of_features.py
#       :part: calls

for name, methods in calls_of_functions(on_cpu).items():
    print(f"{name:23} {', '.join(methods) or '–'}")

# %%
# Besides what the features need, these functions need ``allreduce_coalesced``, ``alltoall_base``, ``recvAnysource``
# and ``MAX``. ``alltoall_base`` is for programs that exchange parts of tensors, for example between the experts of a
# model.
#
# What an accelerator changes
# ---------------------------
#
# A backend for an accelerator needs some methods in addition. To find them, the program runs the same
# features and functions on the simulated device of :doc:`/accelerators/device`. Its only backend is
# ``simccl``, and each rank passes its device as ``device_id`` to ``init_process_group``. The table has
# the rows that differ between the two runs:

on_device = run_features(ON_ACCELERATOR="yes")
show_table(*differences(on_cpu, on_device))

# %%
# The differences have these reasons:
#
# * A pipeline sends and receives in batches. PyTorch calls ``startCoalescing`` and ``endCoalescing``
#   around a batch if ``supportsCoalescing`` returns true. gloo's returns false.
# * To shard another dimension, DTensor exchanges parts. On a CPU, it gathers the tensor instead.
# * The groups of a mesh are split from the default group, because the default group knows its device.
#   :doc:`/accelerators/groups-and-meshes` shows what the ranks then call.
#
# Everything else is equal, including the reductions. So a backend for an accelerator needs ``MIN`` and ``MAX`` as
# well.
#
# Record your own program
# -----------------------
#
# Your program may call more than the examples do, so record one of its steps. PyTorch's profiler has an event for each
# collective and each message of a process group, whose name begins with ``c10d::``. So this function needs only the
# names of the events. ``Reductions`` and ``noted`` add what has no event:
#
# .. listing:: gallery/tutorial/shared/calls_of_features.py
#    :part: record
#
# .. admonition:: How ``Reductions`` and ``noted`` work
#    :collapsible: closed
#
#    A reduction also has a ``ReduceOp``. It is an argument of the operator that the dispatcher calls, so a
#    dispatch mode sees it. Since PyTorch 2.15, Python can read it. ``split``, ``startCoalescing`` and
#    ``endCoalescing`` have no operator, and therefore no event, so the program notes them where Python calls them:
#
#    .. listing:: gallery/tutorial/shared/calls_of_features.py
#       :part: reductions
#
#    .. listing:: gallery/tutorial/shared/calls_of_features.py
#       :part: others
#
# Pass one step of your training to ``record``, and add to your backend what its list contains and the backend lacks.
#
# What no table shows
# -------------------
#
# A backend needs more than operations:
#
# * ``getBackendName``, because every error message contains it.
# * ``Work::wait`` and ``Work::getFuture``, whose calls the profiler does not record.
# * Tensors of ``int64`` and ``uint8``, because the object collectives pickle objects into them.
# * ``shutdown``, which ``destroy_process_group`` calls.
#
# Right values
# ------------
#
# A backend also needs right results, because not every feature notices wrong ones. To see which do, the next
# program runs three cases with the dummy, whose results are all zeros:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/tutorial/what_a_backend_needs/what_zeros_do.py

launch("what_a_backend_needs/what_zeros_do.py", ranks=2)

# %%
# ``DistributedDataParallel`` first all-gathers the number of parameters, and each rank compares its number with that
# of rank 0. From the dummy, the number of rank 0 arrives as zero, so all ranks raise an error, even rank 0.
#
# ``all_gather_object`` fails in its first collective, because that is ``all_gather_single``, which the dummy does not
# have.
#
# .. note::
#
#    Before PyTorch 2.15, ``all_gather_object`` called ``allgather``, and received zeros as the sizes of
#    the objects. It raised an ``EOFError``, because zero bytes contain no object.
#
# The third case averages gradients by hand, and checks nothing. The gradients are zero, the program ends
# without an error, and a model that is trained like this never learns. A wrong backend can look the same.
#
# So begin with the methods and reductions in the columns of your features, and add what ``record`` lists for your
# program. Then test the values, and not only that the program ends.
#
# Not run here: the features on hardware, and FSDP2 with a factor to divide by, which needs
# ``ReduceOp.PREMUL_SUM``.
