"""
Every method of a backend
=========================

Look up here what a method of ``c10d::Backend`` does, who calls it, and since which release of PyTorch it
can be overridden. The tables have all 73 virtual methods of PyTorch 2.15, in the order in which most
authors need them. The declarations follow the tables, with what the arguments mean.

.. diagram:: tutorial/every_operation/diagram

The methods
-----------

Two names in one row are one operation: since PyTorch 2.14, each of them calls the other one by default, so
you override either. In these tables, 2.13 stands for 2.13 or earlier.

Every backend has a name, options, a timeout and an end:

.. list-table::
   :header-rows: 1

   * - method
     - meaning, and who calls it
     - since
   * - ``getBackendName``
     - the name in every error; you must override it, because PyTorch 2.15 reads it in
       ``init_process_group``
     - 2.13
   * - ``getBackendOptions``
     - the options of the group, such as timeout and ranks; read by the flight recorder, ``split_group``
       and pipelining
     - 2.13
   * - ``setTimeout``
     - changes the timeout of later operations; ``dist.set_timeout`` calls it
     - 2.13
   * - ``addEphemeralTimeout``
     - adds to the timeout of later operations until the first of them completes; Inductor calls it when
       its cache has saved time
     - 2.14
   * - ``isInitialized``
     - whether a backend that connects lazily has connected; callers of ``split`` ask
     - 2.15
   * - ``getError``
     - an ``ErrorType``, by default success; ``get_error`` of the backend calls it
     - 2.13
   * - ``shutdown``
     - ends the backend normally; ``destroy_process_group`` calls it
     - 2.13
   * - ``abort``
     - gives up all pending operations; ``group.abort()`` calls it
     - 2.13

``DistributedDataParallel`` needs three operations:

.. list-table::
   :header-rows: 1

   * - method
     - meaning, and who calls it
     - since
   * - ``broadcast``
     - copies a tensor of one rank to all ranks; ``dist.broadcast``, lists of objects, DDP, DTensor
     - 2.13
   * - ``allreduce``
     - reduces tensors, and leaves the result on all ranks; ``dist.all_reduce``, DDP, HSDP, DTensor
     - 2.13
   * - ``allgather``
     - collects the tensors of all ranks in lists; ``dist.all_gather``, DDP, checkpoints
     - 2.13

FSDP2 needs only these two, which use one large tensor in place of a list:

.. list-table::
   :header-rows: 1

   * - method
     - meaning, and who calls it
     - since
   * - ``all_gather_single``, ``_allgather_base``
     - collects the tensors of all ranks in one; ``dist.all_gather_single``, FSDP2, objects
     - 2.14, 2.13
   * - ``reduce_scatter_single``, ``_reduce_scatter_base``
     - reduces, and leaves one part of the result on each rank; ``dist.reduce_scatter_single``, FSDP2
     - 2.14, 2.13

Messages go from one rank to another:

.. list-table::
   :header-rows: 1

   * - method
     - meaning, and who calls it
     - since
   * - ``send``
     - sends a tensor to a rank; ``dist.send``, ``isend``, ``batch_isend_irecv``, pipelining
     - 2.13
   * - ``recv``
     - receives a tensor from a rank; ``dist.recv``, ``irecv``, ``batch_isend_irecv``, pipelining
     - 2.13
   * - ``recvAnysource``
     - receives from any rank; ``dist.recv`` without a source
     - 2.13

These have a root, or wait for all ranks:

.. list-table::
   :header-rows: 1

   * - method
     - meaning, and who calls it
     - since
   * - ``reduce``
     - reduces, and leaves the result on the root; ``dist.reduce``
     - 2.13
   * - ``gather``
     - collects tensors in a list on the root; ``dist.gather``, checkpoints
     - 2.13
   * - ``gather_single``, ``gather_into_tensor``
     - collects tensors in one tensor on the root; ``dist.gather_single``
     - 2.14
   * - ``scatter``
     - gives each rank one tensor of a list that the root has; ``dist.scatter``, DTensor, checkpoints
     - 2.13
   * - ``barrier``
     - returns when all ranks have called it; ``dist.barrier``
     - 2.13
   * - ``monitoredBarrier``
     - a barrier whose error names the ranks that did not arrive; ``dist.monitored_barrier``, which calls only the
       group's backend for CPU tensors
     - 2.13

In these, each rank sends a part to each other rank:

.. list-table::
   :header-rows: 1

   * - method
     - meaning, and who calls it
     - since
   * - ``alltoall``
     - exchanges lists of tensors; ``dist.all_to_all``
     - 2.13
   * - ``all_to_all_single``, ``alltoall_base``
     - exchanges parts of one tensor; ``dist.all_to_all_single``
     - 2.14, 2.13
   * - ``reduce_scatter``
     - reduces lists of tensors, and leaves one tensor on each rank; ``dist.reduce_scatter``
     - 2.13

Several operations can be one call:

.. list-table::
   :header-rows: 1

   * - method
     - meaning, and who calls it
     - since
   * - ``allreduce_coalesced``
     - an ``allreduce`` of several tensors; ``_coalescing_manager``
     - 2.13
   * - ``all_gather_single_coalesced``, ``allgather_into_tensor_coalesced``
     - several ``all_gather_single``; ``_coalescing_manager``, functional collectives, DTensor
     - 2.14, 2.13
   * - ``reduce_scatter_single_coalesced``, ``reduce_scatter_tensor_coalesced``
     - several ``reduce_scatter_single``; ``_coalescing_manager``, functional collectives, DTensor
     - 2.14, 2.13
   * - ``allgather_coalesced``
     - deprecated; ``dist.all_gather_coalesced``
     - 2.13
   * - ``supportsCoalescing``
     - whether the backend has the next two; ``batch_isend_irecv`` asks, and so does PyTorch before it
       aborts all groups
     - 2.13
   * - ``startCoalescing``
     - begins a batch; ``batch_isend_irecv``
     - 2.13
   * - ``endCoalescing``
     - ends the batch, and returns one ``Work`` for all of it
     - 2.13

Tools for debugging use these:

.. list-table::
   :header-rows: 1

   * - method
     - meaning, and who calls it
     - since
   * - ``getSequenceNumberForGroup``
     - how many collectives the group has had, which must be the same on all ranks
     - 2.13
   * - ``setSequenceNumberForGroup``
     - deprecated; since PyTorch 2.14 it only warns
     - 2.13
   * - ``enableCollectivesTiming``
     - asks the backend to measure how long each collective takes; ``group._enable_collectives_timing``
     - 2.13
   * - ``supportsAbortHooks``
     - whether the backend has the next two; PyTorch asks when it makes a group
     - 2.15
   * - ``registerAbortHook``
     - keeps a function that the backend calls before it aborts; flight recorder, health check,
       ``group.register_abort_hook``
     - 2.14
   * - ``unregisterAbortHook``
     - removes an abort hook
     - 2.14
   * - ``supportsCompletionHooks``
     - whether the backend has the next two; the flight recorder asks
     - 2.15
   * - ``registerCompletionHook``
     - keeps a function that the backend calls for each operation that succeeded; flight recorder
     - 2.15
   * - ``unregisterCompletionHook``
     - removes a completion hook
     - 2.15
   * - ``registerOnCompletionHook``
     - an older interface, for a hook that gets a ``WorkInfo``; ``group._register_on_completion_hook``
     - 2.13
   * - ``waitForPendingWorks``
     - waits until the hooks of ``registerOnCompletionHook`` have run; ``destroy_process_group``, before
       ``shutdown``
     - 2.13

Groups are made from groups, and bound to devices:

.. list-table::
   :header-rows: 1

   * - method
     - meaning, and who calls it
     - since
   * - ``supportsSplitting``
     - whether ``split`` works; ``split_group`` and ``new_group`` ask, and ``init_process_group`` with a
       ``device_id``
     - 2.13
   * - ``split``
     - makes a backend for some ranks of the group; ``split_group``, device meshes
     - 2.13
   * - ``merge``
     - makes a backend for the ranks that share a store; ``group.merge_remote_group``
     - 2.13
   * - ``supportsShrinking``
     - whether ``shrink`` works; ``dist.shrink_group`` asks
     - 2.13
   * - ``shrink``
     - makes a backend without some ranks; ``dist.shrink_group``
     - 2.13
   * - ``supportsReconfigure``
     - whether the next two work; ``dist._supports_reconfigure``
     - 2.14
   * - ``get_reconfigure_handle``
     - a text by which other ranks can reach this one; ``dist._get_reconfigure_handle``
     - 2.14
   * - ``reconfigure``
     - gives the group other members; ``dist._reconfigure``
     - 2.14
   * - ``setGroupUid``
     - receives the name of the group when PyTorch names the group. A ``ProcessGroup`` keeps its name only in its
       backends, so one that wraps another passes the name on
     - 2.13
   * - ``getBoundDeviceId``
     - the device that the group is bound to
     - 2.14
   * - ``setBoundDeviceId``
     - binds the group to a device; ``init_process_group`` with a ``device_id``
     - 2.14
   * - ``eagerConnectSingleDevice``
     - may connect for a device at once; ``init_process_group`` and ``new_group`` with a bound device, if
       ``supportsSplitting`` is true
     - 2.13

The others are optional:

.. list-table::
   :header-rows: 1

   * - method
     - meaning, and who calls it
     - since
   * - ``allreduce_sparse``
     - reduces sparse CUDA tensors; ``dist.all_reduce``, DDP with sparse gradients
     - 2.13
   * - ``supportsTensorAlloc``
     - whether ``allocateTensor`` works; FSDP2 asks after
       ``set_allocate_memory_from_process_group_for_comm``
     - 2.13
   * - ``allocateTensor``
     - a tensor in memory from which the backend communicates without a copy; FSDP2
     - 2.13
   * - ``getMemAllocator``
     - an allocator of such memory; ``mem_allocator`` of the backend
     - 2.13
   * - ``suspend``
     - frees the memory of the backend; ``suspend`` of the backend
     - 2.13
   * - ``resume``
     - takes the memory again after ``suspend``; ``resume`` of the backend
     - 2.13
   * - ``getMemoryStats``
     - counts the memory of the backend; ``memory_stats`` of the backend
     - 2.13
   * - ``supportsWindow``
     - whether ``new_window`` works; ``dist._supports_window``
     - 2.14
   * - ``new_window``
     - makes memory that other ranks can read and write; ``dist._new_window``
     - 2.14
   * - ``supportsTimeEstimation``
     - whether the next two work; ``dist._time_estimator`` asks
     - 2.13
   * - ``startTimeEstimate``
     - begins an estimate: collectives are then only simulated; ``dist._time_estimator``
     - 2.15
   * - ``endTimeEstimate``
     - ends the estimate, and returns it in microseconds; ``dist._time_estimator``
     - 2.15

The declarations
----------------

The declarations below come from ``Backend.hpp`` of the installed PyTorch. The callers come from runs: a call in
Python reaches the dummy, whose error names the method, and the features run with gloo under the profiler, as in
:doc:`what-a-backend-needs`.
"""

import sys

sys.path.append("every_operation")
import backend_methods

# sphinx_gallery_start_ignore
import re
from pathlib import Path

import torch


def check_tables(methods):
    """Compare the tables above with the header of this release."""
    release = tuple(int(x) for x in torch.__version__.split(".")[:2])
    rows = r"^   \* - (``.+``)\n(?:     - .+\n)(?:       .+\n)*     - ([\d., ]+)$"
    listed = []
    for names, since in re.findall(rows, Path("every_operation.py").read_text(), re.M):
        names, since = re.findall(r"\w+", names), since.split(", ")
        for name, first in zip(names, since * (len(names) // len(since)), strict=True):
            if tuple(int(x) for x in first.split(".")) <= release:
                listed.append(name)
    assert len(listed) == len(set(listed)), listed
    assert set(listed) == set(methods), set(listed) ^ set(methods)


# sphinx_gallery_end_ignore
methods = backend_methods.virtual_methods()
callers = backend_methods.find_callers()
described = set()


def describe(section):
    described.update(backend_methods.describe(methods, callers, section))


# sphinx_gallery_start_ignore
check_tables(methods)
# sphinx_gallery_end_ignore

# %%
# In the tables of callers, ``funcol`` is the module ``torch.distributed._functional_collectives``. The
# features are ``DDP``, ``ZeRO``, ``FSDP2`` and its first version ``FSDP1``, ``HSDP``, which is FSDP2 on a mesh
# of two dimensions, ``DTensor``, tensor parallelism (``TP``), ``pipelining``, distributed checkpoints (``DCP``),
# the collectives on Python objects (``objects``), uneven inputs (``Join``), and clipping of gradients under
# FSDP2 (``clip_grad_norm_``).
#
# Name, timeout and end
# ---------------------

describe("name, timeout and end")

# %%
# * ``Backend.hpp`` demands that you override ``getBackendName`` and ``getBackendOptions``, which is among the methods
#   for groups below. The dummy works without ``getBackendOptions``, but cannot be split.
#
# What DDP needs
# --------------

describe("DDP")

# %%
# * The vectors have one element each, because a process drives one device. ``tensors[0]`` is the tensor.
#   In ``allgather``, ``outputTensors[0][i]`` receives what rank ``i`` sent, and ``inputTensors[0]`` is
#   the tensor to send.
# * :doc:`options-and-reductions` explains the fields of ``opts``, and when a backend gets which reduction.
#
# What FSDP2 needs
# ----------------

describe("FSDP2")

# %%
# * One of the two tensors is as large as those of all ranks together: the output of an all-gather, and the input of a
#   reduce-scatter. Its part number ``i`` along the first dimension belongs to rank ``i``.
# * FSDP1 calls ``allgather`` for CPU tensors only, and ``all_gather_single`` for others.
#
# Messages between two ranks
# --------------------------

describe("messages")

# %%
# * ``dstRank`` and ``srcRank`` are ranks of the group. Messages between two ranks with one ``tag`` must
#   arrive in the order in which they were sent.
# * A rank can be its own peer. ``dist.send`` and ``dist.recv`` refuse that, but ``isend``, ``irecv`` and
#   ``batch_isend_irecv`` pass it on.
# * In ``recvAnysource``, let ``Work::sourceRank`` return the rank of the sender in the group. ``dist.recv``
#   turns it into a rank of the world.
# * ``batch_isend_irecv`` calls ``send`` and ``recv`` in the order of the list. If ``supportsCoalescing`` is true, it
#   calls ``startCoalescing`` before and ``endCoalescing`` after them. While such a batch is open, PyTorch also holds
#   back some collectives that other threads call in this group, such as ``all_reduce``.
#
# Operations with a root, and barriers
# ------------------------------------

describe("roots and barriers")

# %%
# * Only the rank ``opts.rootRank`` has the list of all tensors. On the other ranks, the list of
#   ``gather`` and of ``scatter`` is empty. ``reduce`` may leave anything in the tensors of the other
#   ranks.
# * ``barrier`` has no tensors, so PyTorch chooses the backend by a device: that of ``device_ids``, which the program
#   can pass, else the ``device_id`` of the group, else the CPU if the group has a backend for it, else the
#   accelerator. So gloo gets every barrier of a group ``cpu:gloo,npu:acme`` if the program passes neither
#   ``device_ids`` nor ``device_id``.
# * ``monitoredBarrier`` names all ranks that did not arrive if ``wait_all_ranks``, the second argument, is true. If
#   rank 0 collects the arrivals, let the other ranks wait longer than the timeout, because otherwise one of them may
#   give up first, and name rank 0.
# * Some calls need several methods, one after the other, and the error names the first: ``gather_object``
#   fails in ``allgather`` and does not reach ``gather``. The tables list the feature ``objects`` with
#   every method that the object collectives call.
#
# From each rank to each rank
# ---------------------------

describe("each to each")

# %%
# * ``outputSplitSizes`` and ``inputSplitSizes`` count rows of the first dimension, one number for each
#   rank. A list is empty if the caller gave none: all its parts have the same size. The sizes must agree:
#   what rank ``i`` sends to rank ``j`` is as long as what ``j`` receives from ``i``.
# * ``alltoall`` and ``reduce_scatter`` take lists with one tensor for each rank, which may differ in size.
#   ``alltoall`` receives its lists as the vectors themselves. In ``reduce_scatter``, the list is one level deeper: it
#   is ``inputTensors[0]``.
#
# Several tensors in one call
# ---------------------------

describe("several tensors")

# %%
# * The vectors have one element for each operation. A loop over the single operation is enough, if it
#   returns one ``Work`` that is complete when all operations are.
# * Functional all-gather and reduce-scatter, on which DTensor is built, call these methods for a single
#   tensor, too.
# * Return true from ``supportsCoalescing`` only if you have both ``startCoalescing`` and ``endCoalescing``.
#   Python aborts all groups in one batch, so ``endCoalescing`` must not throw after an ``abort``.
#
# Debugging and records
# ---------------------

describe("debugging")

# %%
# * Since PyTorch 2.14, the sequence numbers begin with 0. :doc:`step-4-unimplemented-collective` shows when
#   PyTorch reads them.
# * :doc:`releases` runs abort hooks and completion hooks.
#
# Groups made from groups
# -----------------------

describe("groups")

# %%
# * ``getBackendOptions`` throws unless you override it. :doc:`releases` implements it together with
#   ``split``, and adds ``perform_nocolor_split``, which ``Backend`` does not declare.
#
# A group such as ``cpu:gloo,npu:acme`` has several backends, and one of them is its default. Since
# PyTorch 2.14, it is the one for the type of ``device_id``, else for the accelerator, else for any device
# but the CPU. The group passes hooks and windows to it alone, and cannot be reconfigured.
#
# Memory, windows and estimates
# -----------------------------

describe("memory, windows and estimates")

# sphinx_gallery_start_ignore
assert described == set(methods), described ^ set(methods)
# sphinx_gallery_end_ignore

# %%
# * Sparse gradients, such as those of an embedding with ``sparse=True`` under DDP, reach
#   ``allreduce_sparse`` only on CUDA. Sparse CPU tensors reach ``allreduce``, so refuse them there if you
#   cannot reduce them.
# * ``addEphemeralTimeout`` does not change the timeout of operations that have already started. Several
#   calls add up, and each extension ends on its own.
#
# The fields of the options
# -------------------------
#
# The header ``Types.hpp`` declares the options of all operations:

for name, fields in backend_methods.fields_of_options(methods):
    print(f"{name}:", *fields)

# %%
# What a Work must have
# ---------------------
#
# * ``wait`` returns when the caller may use the tensors, or throws. Its timeout is 0 if the program gave
#   none.
# * ``getFuture`` returns a future whose value is the list of the written tensors, which DDP needs. A program may take
#   this value as soon as ``wait`` has returned. Do not wait in ``getFuture``, because a call from Python holds the
#   interpreter lock there. PyTorch releases the lock before ``wait``.
# * ``isCompleted`` and ``isSuccess`` return at once.
#
# Return a ``Work`` from every collective, if need be one that is already complete. Without a ``Work``, functional
# collectives crash, as :doc:`step-4-backend-in-python` shows.
#
# Not run here: methods that no table of callers lists, FSDP1 and barriers on an accelerator, and an
# open batch with a second thread.
