"""
Every method of a backend
=========================

After this page you know which method of ``c10d::Backend`` a Python call reaches, how to
declare the method, what its arguments mean, and which features of PyTorch call it. The
methods are grouped in the order in which most authors need them.

.. diagram:: tutorial/every_operation/diagram

The page is made from PyTorch itself:

* The declarations are those of the installed header, ``Backend.hpp``.
* The Python calls were run with the dummy. The error of each call names the method.
* The features were run with gloo under the profiler, as in
  :doc:`what-a-backend-needs`.

.. listing:: gallery/tutorial/every_operation/every_call.py
   :part: ask
"""

import json
import os
import re
import tempfile
from pathlib import Path

import torch

from launcher import PROFILER, launch
from result_table import show_table

HEADERS = Path(torch.__file__).parent / "include/torch/csrc/distributed/c10d"
# sphinx_gallery_start_ignore
# time limit: 180
# sphinx_gallery_end_ignore


def without_comments(header):
    """The text of a header. A name of a parameter in a comment stays."""
    text = re.sub(r"/\*\s*(\w+)\s*\*/", r"\1", (HEADERS / header).read_text())
    return re.sub(r"//.*", "", text)


def virtual_methods():
    """A dictionary from the name of a method to its declaration, without defaults."""
    text = without_comments("Backend.hpp").partition("explicit Backend(")[2]
    text = re.sub(r" =\s+(\w+\(\)|\{\}|\d+|\w+|std::nullopt)(?=[,)])", "", text)
    found = [" ".join(x.split()) for x in re.findall(r"\bvirtual\s+([^{;]+?)\s*[{;]", text)]
    return {re.search(r"(\w+)\s*\(", x)[1]: x.replace("( ", "(") for x in found}


methods = virtual_methods()
[reached] = launch("every_operation/every_call.py", ranks=1, show=False)
with tempfile.TemporaryDirectory() as folder:
    os.environ |= {"SHARED_FOLDER": folder, "MORE_FEATURES": "yes"}
    reports = launch("shared/calls_of_features.py", ranks=2, expected_stderr=PROFILER, show=False)

# %%
# ``describe`` prints the declarations of some methods and shows who called them in this run.
# Two names in one row are one operation: since PyTorch 2.14, each of the two methods calls
# the other one by default, and you override either.
#
# ``funcol`` is the module ``torch.distributed._functional_collectives``. The features are
# ``DDP``, ``ZeRO``, ``FSDP1``, ``FSDP2``, ``HSDP``, ``DTensor``, tensor parallelism (``TP``),
# ``pipelining``, distributed checkpoints (``DCP``), the collectives on Python objects
# (``objects``), uneven inputs (``Join``), and clipping of gradients under FSDP2
# (``clip_grad_norm_``).

callers = [(method, call) for call, method in json.loads(reached).items()]
for report in reports:
    for feature, operations in json.loads(report).items():
        callers += [(operation, feature) for operation in operations]
described = set()


def describe(*rows):
    """Show some methods. A row is a name, or two names of one operation."""
    table = []
    for row in rows:
        names = [name for name in row.split(" / ") if name in methods]
        described.update(names)
        for name in names:
            declaration = methods[name]
            if len(declaration) > 80:
                declaration = declaration.replace("(", "(\n    ", 1).replace(", ", ",\n    ")
            print(f"{declaration};")
        if found := dict.fromkeys(call for method, call in callers if method in names):
            table.append([" / ".join(names), ", ".join(f"``{x}``" for x in found)])
    if table:
        show_table(["method", "called by"], table)


# %%
# Name, timeout and end
# ---------------------

describe("getBackendName", "setTimeout", "shutdown", "abort", "isInitialized", "getError")

# %%
# * Every backend must override ``getBackendName``, because the error of every missing operation
#   contains its result. ``Backend.hpp`` demands the same of ``getBackendOptions``, which is
#   among the methods for groups below. The dummy works without it, but cannot be split.
# * ``destroy_process_group`` calls ``shutdown``. ``group.abort()`` calls ``abort``. After
#   either, raise an error in every operation.
# * ``setTimeout`` changes the timeout of later operations. See
#   :doc:`releases` for what happens without it.
# * ``isInitialized`` (since PyTorch 2.15) and ``getError`` have defaults: ``true``, and no
#   error.
#
# What DDP needs
# --------------

describe("broadcast", "allreduce", "allgather")

# %%
# * The vectors have one element each, because a process drives one device. ``tensors[0]`` is
#   the tensor. In ``allgather``, ``outputTensors[0][i]`` receives what rank ``i`` sent, and
#   ``inputTensors[0]`` is the tensor to send.
# * ``opts.rootRank`` is a rank of the group and not of the world. ``opts.rootTensor`` is 0.
# * ``opts.reduceOp`` can be ``SUM``, ``AVG``, ``PRODUCT``, ``MIN``, ``MAX``, ``BAND``,
#   ``BOR``, ``BXOR`` or ``PREMUL_SUM``. Refuse those that you do not implement.
#   A backend that ignores ``reduceOp`` returns wrong results silently.
# * ``opts.asyncOp`` is false if the program waits in the call. ``opts.timeout`` is –1 ms, which
#   is ``kUnsetTimeout``, if the program gave none; use the timeout of the group then.
# * The future of the ``Work`` must hold the list of the written tensors: DDP reads the
#   gradients from it.
#
# What FSDP2 needs
# ----------------

describe(
    "all_gather_single / _allgather_base",
    "reduce_scatter_single / _reduce_scatter_base",
)

# %%
# * One of the tensors is as large as those of all ranks together. Along the first dimension,
#   its part number ``i`` belongs to rank ``i``.
# * FSDP2 reduces gradients of ``float32`` and ``bfloat16`` with ``AVG``, or with
#   ``PREMUL_SUM`` if the program sets a factor to divide by. It divides others itself.
# * FSDP1 calls ``allgather`` for CPU tensors only. For others it calls ``all_gather_single``.
#
# Messages between two ranks
# --------------------------

describe("send", "recv", "recvAnysource")

# %%
# * ``dstRank`` and ``srcRank`` are ranks of the group. Messages between two ranks with one
#   ``tag`` must arrive in the order in which they were sent.
# * ``recvAnysource`` is a ``recv`` without a source. Let ``Work::sourceRank`` return the rank
#   of the sender in the group. ``recv`` of Python returns it as a rank of the world.
# * ``batch_isend_irecv`` calls ``send`` and ``recv`` in the order of the list. If
#   ``supportsCoalescing`` is true, it calls ``startCoalescing`` before. Until the batch ends,
#   PyTorch then also holds back some collectives that other threads call in this group, such as
#   ``all_reduce``.
#
# Operations with a root, and barriers
# ------------------------------------

describe(
    "reduce",
    "gather",
    "gather_single / gather_into_tensor",
    "scatter",
    "barrier",
    "monitoredBarrier",
)

# %%
# * Only the rank ``opts.rootRank`` has the list of all tensors. On all other ranks, the list
#   of ``gather`` and of ``scatter`` is empty. ``reduce`` may leave anything in the tensors of
#   the other ranks.
# * ``barrier`` has no tensors. PyTorch chooses the backend by ``opts.device`` and does not
#   pass it on. ``dist.barrier`` sets it to the device of ``device_ids``, which the program can
#   pass, else to the ``device_id`` of the group, else to the CPU if the group has a backend for
#   it. So in a group ``cpu:gloo,npu:acme`` without ``device_id``, gloo gets every barrier.
# * ``monitoredBarrier`` names the ranks that did not arrive: all of them if ``wait_all_ranks``,
#   the second argument, is true. If rank 0 decides, let the others wait longer than the timeout.
#   Otherwise one of them may give up first, and name rank 0.
# * Some calls need several methods, one after the other. The error names the first:
#   ``gather_object`` fails in ``allgather`` and does not reach ``gather``. Among the features,
#   ``objects`` has all methods of the object collectives.
#
# Parts for all ranks
# -------------------

describe("alltoall", "all_to_all_single / alltoall_base", "reduce_scatter")

# %%
# * ``outputSplitSizes`` and ``inputSplitSizes`` count rows of the first dimension, one number
#   for each rank. A list is empty if the caller gave none: all its parts have the same size.
#   The sizes must agree: what rank ``i`` sends to rank ``j`` is as long as what ``j``
#   receives from ``i``.
# * ``alltoall`` and ``reduce_scatter`` receive lists with one tensor for each rank. The tensors
#   may differ in size. A list of ``alltoall`` is one vector, that of ``reduce_scatter`` is
#   ``inputTensors[0]``.
#
# Several tensors in one call
# ---------------------------

describe(
    "allreduce_coalesced",
    "all_gather_single_coalesced / allgather_into_tensor_coalesced",
    "reduce_scatter_single_coalesced / reduce_scatter_tensor_coalesced",
    "allgather_coalesced",
    "supportsCoalescing",
    "startCoalescing",
    "endCoalescing",
)

# %%
# * The vectors have one element for each operation. A loop over the single operation, and a
#   ``Work`` that is complete when all are, is enough.
# * Functional all-gather and reduce-scatter call these for a single tensor, too. DTensor is
#   built on functional collectives.
# * ``startCoalescing`` begins a batch and ``endCoalescing`` returns the ``Work`` of all
#   operations in between. Return true from ``supportsCoalescing`` only if you have both. Python
#   aborts all groups in one batch, so ``endCoalescing`` must not throw after an ``abort``.
# * ``allgather_coalesced`` is deprecated.
#
# Debugging and records
# ---------------------

describe(
    "getSequenceNumberForGroup",
    "setSequenceNumberForGroup",
    "enableCollectivesTiming",
    "supportsAbortHooks",
    "registerAbortHook",
    "unregisterAbortHook",
    "supportsCompletionHooks",
    "registerCompletionHook",
    "unregisterCompletionHook",
    "registerOnCompletionHook",
    "waitForPendingWorks",
)

# %%
# * A sequence number counts the collectives of a group. It must be the same on all ranks.
#   ``setSequenceNumberForGroup`` is deprecated: since PyTorch 2.14 the numbers begin with 0.
# * ``enableCollectivesTiming`` asks the backend to measure how long each collective takes.
# * For the other hooks, see :doc:`recent-releases`. ``registerOnCompletionHook`` is an older
#   interface, for a hook that gets a ``WorkInfo``. With such a hook, ``destroy_process_group``
#   calls ``waitForPendingWorks`` before ``shutdown``.
#
# Groups made from groups
# -----------------------

describe(
    "getBackendOptions",
    "supportsSplitting",
    "split",
    "merge",
    "supportsShrinking",
    "shrink",
    "supportsReconfigure",
    "get_reconfigure_handle",
    "reconfigure",
    "setGroupUid",
    "getBoundDeviceId",
    "setBoundDeviceId",
    "eagerConnectSingleDevice",
)

# %%
# * ``new_group`` calls the function that creates the backend. If the program has passed a
#   ``device_id`` and ``supportsSplitting`` is true, it also calls ``perform_nocolor_split`` on the
#   ranks outside the new group. ``Backend`` has no such method: :doc:`recent-releases` adds one.
# * ``getBackendOptions`` throws unless you override it. The flight recorder reads the timeout and
#   the ranks from the options, ``split_group`` copies them, and pipelines read the timeout.
# * ``split_group`` tests ``supportsSplitting``, takes the result of ``getBackendOptions`` (a copy
#   of it since PyTorch 2.14), and calls ``split`` with the ranks of the new group.
# * With ``device_id``, ``init_process_group`` calls ``setBoundDeviceId``, and
#   ``eagerConnectSingleDevice`` if ``supportsSplitting`` is true. ``eagerConnectSingleDevice``
#   may do nothing.
# * ``merge`` makes a group of the ranks that meet at a store, and ``shrink``, which
#   ``dist.shrink_group`` calls, a group without some ranks. ``setGroupUid`` receives the name of
#   the group.
#
# A group such as ``cpu:gloo,npu:acme`` has several backends, and one of them is its default. Since
# PyTorch 2.14, it is the one for the type of ``device_id``, else for the accelerator, else for any
# device but the CPU. The group takes its rank and size from the default backend. It also passes
# the abort hooks, the completion hooks and windows to it alone. A group with several backends
# cannot be reconfigured.
#
# Memory, windows and estimates
# -----------------------------

describe(
    "allreduce_sparse",
    "getMemAllocator",
    "allocateTensor",
    "supportsTensorAlloc",
    "suspend",
    "resume",
    "getMemoryStats",
    "supportsWindow",
    "new_window",
    "supportsTimeEstimation",
    "startTimeEstimate",
    "endTimeEstimate",
    "addEphemeralTimeout",
)

# sphinx_gallery_start_ignore
assert described == set(methods), described ^ set(methods)
# sphinx_gallery_end_ignore

# %%
# These are optional, and no feature of the run calls them.
#
# * ``allreduce_sparse`` receives sparse CUDA tensors, such as the gradients of an embedding
#   with ``sparse=True`` under DDP. Sparse CPU tensors reach ``allreduce``, so refuse them there
#   if you cannot reduce them.
# * ``getMemAllocator`` and ``allocateTensor`` give memory that the backend can communicate from
#   without a copy. FSDP2 asks ``supportsTensorAlloc`` first, if a program calls
#   ``set_allocate_memory_from_process_group_for_comm``.
# * ``suspend`` frees the memory of the backend until ``resume``; ``getMemoryStats`` counts it.
# * Between ``startTimeEstimate`` and ``endTimeEstimate``, which returns microseconds, the backend
#   must simulate the collectives.
# * ``addEphemeralTimeout`` adds to the timeout of later operations, until the first of them ends.
# * For windows, see :doc:`recent-releases`.
#
# The fields of the options
# -------------------------
#
# The header ``Types.hpp`` declares the options of all operations:

structures = r"struct (\w+Options) \{\n(.*?)\n\};"
for name, fields in re.findall(structures, without_comments("Types.hpp"), re.S):
    if f" {name}&" in str(methods):
        print(f"{name}:", *re.findall(r"(\w+)(?: = [^;]+)?;", fields))

# %%
# What a Work must have
# ---------------------
#
# * ``wait`` returns when the caller may use the tensors, or throws. The timeout that it
#   receives is 0 if the program gave none.
# * ``getFuture`` returns a future whose value is the list of the written tensors. DDP needs
#   it. A program may take this value as soon as ``wait`` has returned. PyTorch calls ``getFuture``
#   with Python's interpreter lock, so do not wait in it. It releases the lock before ``wait``.
# * ``isCompleted`` and ``isSuccess`` return at once.
# * ``sourceRank`` returns the sender of what ``recvAnysource`` received.
#
# If ``opts.asyncOp`` is false, a method may return no ``Work`` at all: PyTorch then does not
# wait. But the flight recorder then never retires its record of the operation, which looks as if
# it hung. A ``Work`` that is already complete avoids this. If ``opts.asyncOp`` is true, a method
# must return a ``Work``, or functional collectives crash. :doc:`step-4-several-ranks` shows a
# ``Work`` in use.
#
# The build did not run the methods without a row in a table, FSDP1 and barriers on an accelerator,
# an open batch with a second thread, nor a functional collective without a ``Work``.
