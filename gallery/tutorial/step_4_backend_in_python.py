"""
A backend in Python
===================

Since PyTorch 2.14, a backend can be a class in Python. Write one to try an algorithm, or to wrap a library that has a
Python API, before you write C++. This page shows a small one that communicates and trains a model, what
such a class cannot override, and what it costs.

.. note::

   Before 2.14, the constructor fails with ``TypeError: StoreBackend: No constructor defined!``

The work
--------

A collective returns a ``Work``, whose future has as its value the list of tensors that the operation wrote.
Because the operations below return when they are complete, their future has its result from the start:

.. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
   :part: work

The exchange
------------

This backend needs no network code, because all ranks of a group already share a store. To exchange tensors, a rank
publishes the bytes of its tensor under a key of its own, waits for the keys of the others, up to the timeout of the
group, and reads them. The number of the call is part of each key, so that no rank reads a tensor of an earlier call.

Without cleanup, the store would grow with each call. So when a rank has read the keys of all ranks in one call, it
deletes its own key of the call before. No rank needs that key any more, because each rank publishes its tensor only
after it has read everything of the call before. A second group on the same store needs new keys, as
:doc:`/right/rendezvous` shows.

Two classes have the name ``Backend``. Derive yours from ``torch._C._distributed_c10d.Backend``, the base class of all
backends, whose second name is ``torch.distributed._Backend``. By contrast, ``torch.distributed.Backend`` is a kind of
string, which keeps the list of all backends and registers new ones. The section on names explains the properties at
the top of our class:

.. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
   :part: backend

``allreduce``, ``broadcast`` and ``allgather`` call ``exchange``, and copy what they need of its result. Their names
and arguments are those of the C++ methods:

.. admonition:: The code
   :collapsible: closed

   .. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
      :part: operations
      :dedent: 0

   They handle CPU tensors with at least one element, and ``no_grad`` lets them write into a parameter of a model.

The class needs no create function of its own, because its constructor takes what PyTorch passes to one:

.. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
   :part: register
"""

# %%
# Two ranks
# ---------
#
# The program first calls each operation. Then it calls two operations that the backend does not support,
# and reads the options of a class that does not define them:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
#       :part: use
#
#    .. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
#       :part: errors
#
#    .. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
#       :part: options
#
# At the end, ``DistributedDataParallel`` trains one model with the new backend and one with gloo. It
# needs all three operations: ``allgather`` and ``broadcast`` in its constructor, and ``allreduce`` in the
# backward pass.
#
# .. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
#    :part: train

from launcher import launch

# sphinx_gallery_start_ignore
import re

import torch
from older_releases import launch  # noqa: F811

# sphinx_gallery_end_ignore
launch("step_4_backend_in_python/backend_in_python.py", ranks=2)

# sphinx_gallery_start_ignore
from contextlib import suppress
from pathlib import Path

import torch.distributed as dist

NOT_PASSED_ON = """
_allgather_base _reduce_scatter_base alltoall_base allgather_into_tensor_coalesced
reduce_scatter_tensor_coalesced gather_single gather_into_tensor isInitialized
addEphemeralTimeout getBoundDeviceId setBoundDeviceId supportsAbortHooks
supportsCompletionHooks registerCompletionHook unregisterCompletionHook
"""


def check_names():
    """Compare the names in the texts below with the headers of PyTorch."""
    headers = Path(torch.__file__).parent / "include/torch/csrc/distributed/c10d"
    header = (headers / "py/PyBackend.hpp").read_text()
    names = set(re.findall(r'"(\w+)"', header)) - {"shrink", "split", "merge"}
    absent = names - set(re.findall(r"``(\w+)``", Path("step_4_backend_in_python.py").read_text()))
    assert not absent, absent
    text = re.sub("//.*", "", (headers / "Backend.hpp").read_text())
    virtual = set(re.findall(r"virtual\s[^;{]*?(\w+)\s*\(", text)) - {"clone"}  # of the options
    method = r"(\w+)\([^(){}]*(?:\([^()]*\)[^(){}]*|\{\})*\)\s*(?:const\s*)?override\s*\{"
    only_in_cpp = virtual - set(re.findall(method, header))
    assert only_in_cpp == virtual & set(NOT_PASSED_ON.split()), only_in_cpp


def check_calls():
    """Check which methods of a class in Python are called."""
    calls = []

    class Work(dist.Work):
        def wait(self, timeout=None):
            return True

        def is_completed(self):
            raise AssertionError("never called")

    class Noting(dist.distributed_c10d.C10DBackend):
        supports_coalescing = True

        def __init__(self, store, rank, size, timeout):
            super().__init__(rank, size)

        def getBackendName(self):
            return "noting"

        @property
        def options(self):
            calls.append("options")
            return dist.distributed_c10d.C10DBackend.Options("noting")

    def note(name):
        setattr(Noting, name, lambda self, *arguments: calls.append(name) or Work())

    for name in ("recv_anysource", "barrier", "_allgather_base", "gather_single"):
        note(name)
    for name in ("start_coalescing", "end_coalescing", "_start_coalescing", "_end_coalescing"):
        note(name)
    dist.Backend.register_backend("noting", Noting, devices=["cpu"])
    dist.init_process_group("noting", store=dist.HashStore(), rank=0, world_size=1)
    assert ("options" in calls) == (torch.__version__ >= "2.15"), calls
    calls.clear()
    tensor, cpu = torch.ones(1), torch.device("cpu")
    assert not dist.barrier(async_op=True).is_completed()
    dist.group.WORLD._start_coalescing(cpu)
    dist.group.WORLD._end_coalescing(cpu)
    for function, arguments in [
        (dist.all_gather_single, [tensor, tensor]),
        (dist.gather_single, [tensor, tensor]),
        (dist.recv, [tensor]),
    ]:
        with suppress(RuntimeError):
            function(*arguments)
            raise AssertionError(f"{function.__name__} did not fail")
    assert calls == ["barrier", "start_coalescing", "end_coalescing", "recv_anysource"], calls
    dist.destroy_process_group()


if torch.__version__ >= "2.14":
    check_names()
    check_calls()
# sphinx_gallery_end_ignore

# %%
# Our ``allreduce`` refuses reductions other than the sum. Its ``NotImplementedError`` reaches the program with its
# own type, as every exception of a backend in Python does. A method that the class does not override, such as
# ``reduce``, raises the same error as in C++.
#
# After ``wait`` has returned, ``is_completed`` still returns ``False``, because the ``Work`` that a program receives
# is a C++ object around ours, which passes on only ``wait`` and ``get_future``.
#
# A Work without a result
# -----------------------
#
# Always return a ``Work`` whose future has the tensors, because c10d uses the result of some operations without a test.
# DDP crashes if ``allreduce`` returns a ``Work`` with an empty list. A functional collective, which returns its result
# as a new tensor, crashes if ``allreduce`` returns no ``Work`` at all:
#
# .. listing:: gallery/tutorial/step_4_backend_in_python/broken_work.py
#    :part: cases

launch("step_4_backend_in_python/broken_work.py", ranks=1)

# %%
# Signal 11 is a segmentation fault. With a ``Work`` that has the tensors, both functions end as they should.
#
# Names that differ from C++
# --------------------------
#
# Between c10d and your class stands the C++ class ``PyBackend``, which overrides the methods of a backend and
# calls a method of your class for each. Most have the same names as in :doc:`every-operation`. The box has those that
# differ, according to the header ``torch/csrc/distributed/c10d/py/PyBackend.hpp``:
#
# .. admonition:: For reference: the methods and properties whose names differ
#    :collapsible: closed
#
#    .. list-table::
#       :header-rows: 1
#
#       * - C++
#         - Python
#       * - ``recvAnysource``
#         - ``recv_anysource``
#       * - ``startCoalescing``, ``endCoalescing``
#         - ``start_coalescing``, ``end_coalescing``
#       * - ``monitoredBarrier``
#         - ``monitored_barrier``
#       * - ``setTimeout``, ``getError``
#         - ``set_timeout``, ``get_error``
#       * - ``getMemoryStats``, ``supportsTensorAlloc``
#         - ``memory_stats``, ``supports_tensor_alloc``
#       * - ``eagerConnectSingleDevice``
#         - ``eager_connect_single_device``
#       * - ``setGroupUid``
#         - ``_set_group_uid``
#       * - ``setSequenceNumberForGroup``, ``getSequenceNumberForGroup``
#         - ``_set_sequence_number_for_group``, ``_get_sequence_number_for_group``
#       * - ``registerOnCompletionHook``, ``waitForPendingWorks``,
#           ``enableCollectivesTiming``
#         - ``_register_on_completion_hook``, ``_wait_for_pending_works``,
#           ``_enable_collectives_timing``
#       * - ``startTimeEstimate``, ``endTimeEstimate`` (PyTorch 2.15)
#         - ``_start_time_estimate``, ``_end_time_estimate``
#       * - ``supportsSplitting``, ``supportsCoalescing``, ``supportsShrinking``,
#           ``supportsReconfigure``, ``supportsWindow``
#         - properties: ``supports_splitting``, ``supports_coalescing``,
#           ``supports_shrinking``, ``supports_reconfigure``, ``supports_window``
#       * - ``supportsTimeEstimation``
#         - property ``_supports_time_estimate``; with 2.14 ``supports_time_estimate``
#       * - ``getBackendOptions``
#         - property ``options``
#
# Where programs call a method by another name, still override the name in the table: programs call
# ``_start_coalescing``, for example, but an override of ``_start_coalescing`` has no effect.
#
# Define all properties of the table, because PyTorch reads them, such as ``supports_coalescing`` in
# ``batch_isend_irecv``. If your class does not define one, that of the base class calls itself until Python raises a
# ``RecursionError``, as the output shows for ``options``.
#
# What you can override only in C++
# ---------------------------------
#
# ``PyBackend`` of PyTorch 2.15.0 does not pass on calls of these methods:
#
# * the older names of the collectives on single tensors, such as ``_allgather_base`` and ``alltoall_base``:
#   override ``all_gather_single`` and ``all_to_all_single``;
# * ``gather_single`` and ``gather_into_tensor``;
# * ``supportsAbortHooks``, ``supportsCompletionHooks`` and the methods that register and unregister
#   completion hooks;
# * ``isInitialized``, ``addEphemeralTimeout``, and the two methods for the bound device;
# * all methods of ``Work`` except ``wait`` and ``get_future``. ``dist.recv`` without a source needs one of
#   them, so the tensor arrives, and then the call fails with
#   ``sourceRank() may only be called on work objects …``
#
# PyTorch does not always keep the Python object. With ``TORCH_DISTRIBUTED_DEBUG=DETAIL``, keep a reference to
# your backend until the group is destroyed, because otherwise its methods can no longer be called.
#
# What it costs
# -------------
#
# Each call from C++ takes Python's global interpreter lock, so an operation does not start while another
# thread of the rank holds the lock.
#
# .. diagram:: tutorial/step_4_backend_in_python/diagram
#
# The design of this backend costs much more than the lock. All data goes through the process of the store, and
# every rank reads the tensors of all ranks. Because its operations block, ``DistributedDataParallel`` cannot compute
# while it communicates. When your algorithm works, write it in C++, where the collectives have the same names.
#
# Not run here: the level ``DETAIL`` without a reference to the backend.
