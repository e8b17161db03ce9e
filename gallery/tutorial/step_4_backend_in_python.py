"""
Step 4: Try a backend in Python
===============================

After this page you can write a backend in Python, run it on several ranks and train
a model with it. That is useful before you write C++: to try an algorithm, or to wrap
a library that has a Python API. The backend on this page is small, and it
communicates.

.. diagram:: tutorial/step_4_backend_in_python/diagram

Since PyTorch 2.14, a class in Python can derive from c10d's ``Backend``. With 2.13 its
constructor fails with ``TypeError: StoreBackend: No constructor defined!``

Two classes have the name ``Backend``. ``torch.distributed.Backend`` is a kind of string: it has
a list of all backends, and it registers new ones. The base class of all backends is
``torch._C._distributed_c10d.Backend``, in a private module. PyTorch 2.15 derives a backend in
Python from the same class, in ``torch/distributed/_nccl4py/backend.py``.
``torch.distributed._Backend`` is another name for it. As of November 2026, PyTorch's main
branch also has the public name ``torch.distributed.BackendBase``.

The work
--------

A collective returns a ``Work``. A subclass in Python overrides two methods, ``wait`` and
``get_future``. The value of the future is the list of tensors that the operation wrote. The
operations on this page return when they are complete, so the future has its result
from the start.

.. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
   :part: work

The exchange
------------

The class defines two things about itself, its name and its ``options``, which contain
the timeout of the group.

All ranks of the group use one store. In each call a rank publishes the bytes of its
tensor under its own key. It waits for the keys of the others, up to the timeout of the
group, and reads them. The number of the call is part of each key.

Old keys are deleted. When a rank has read the keys of all ranks in one call, every
rank has finished reading in the call before. The rank can then delete its own key of
that earlier call. Each rank keeps one key between two calls.
The last one remains after ``destroy_process_group``. A second group on the same store needs
new keys, as :doc:`step-2-create-function` shows.

.. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
   :part: backend

Three operations are built on this function. They are methods of the same class,
and they have the names and the arguments of the C++ methods. They handle CPU tensors
with at least one element. With ``no_grad``, they can write into a parameter of a model.

.. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
   :part: operations
   :dedent: 0

The class itself is the function that creates the backend, because its constructor takes
the store, the rank, the size and the timeout:

.. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
   :part: register
"""

# %%
# Two ranks
# ---------
#
# The program calls each operation, and prints what an asynchronous one returns:
#
# .. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
#    :part: use
#
# Then it calls two operations that the backend does not support, and reads the options of a
# backend that does not define them:
#
# .. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
#    :part: errors
#
# .. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
#    :part: options
#
# At the end, ``DistributedDataParallel`` trains one model with the new backend and one with
# gloo. It calls all three operations: ``allgather`` and ``broadcast`` in its
# constructor, and ``allreduce`` in the backward pass.
#
# .. listing:: gallery/tutorial/step_4_backend_in_python/backend_in_python.py
#    :part: train

from launcher import launch

# sphinx_gallery_start_ignore
import re

import torch
from launcher import RankError

launch_ranks = launch


def launch(worker, ranks):
    try:
        launch_ranks(worker, ranks=ranks)
    except RankError as error:
        # PyTorch 2.13 cannot do what this page is about; the page shows what it says.
        print(re.search(r"^TypeError: .+", str(error), re.M)[0])


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
# With PyTorch 2.14 and later, both ranks have the sum, the tensor of rank 1, and the
# tensors of both ranks. The program receives an exception of the backend with its own
# type. A method that the class does not override raises the same error as in C++.
#
# Without ``options``, reading them does not raise that error, because the property of the base
# class calls itself until Python raises a ``RecursionError``. PyTorch 2.15 reads the
# options for its flight recorder in ``init_process_group``. It ignores the error, so a backend
# without the property works, but the creation of each group takes milliseconds longer.
#
# ``is_completed`` returns ``False`` after ``wait`` has returned. The ``Work`` that a
# program receives is a C++ object around our ``Work``. It passes on only ``wait`` and
# ``get_future``. An override of ``is_completed`` in Python has no effect.
#
# A Work without a result
# -----------------------
#
# c10d uses the result of some operations without a test. A backend whose ``allreduce`` returns
# a ``Work`` with an empty list, or none at all, crashes the program in these two cases:
#
# .. listing:: gallery/tutorial/step_4_backend_in_python/broken_work.py
#    :part: cases

launch("step_4_backend_in_python/broken_work.py", ranks=1)

# %%
# Signal 11 is a segmentation fault. With a ``Work`` that has the tensors, both functions end
# as they should. ``dist.all_reduce`` itself works without a ``Work``. But the flight recorder
# of PyTorch 2.15 never marks such a call as ``retired``, so it looks like one that hangs.
#
# Names that differ
# -----------------
#
# The C++ class between c10d and your class is ``PyBackend``. It overrides C++ methods and
# calls a Python method for each, in most cases with the same name. The names below differ. They
# are in the header ``torch/csrc/distributed/c10d/py/PyBackend.hpp`` of PyTorch.
#
# .. list-table::
#    :header-rows: 1
#
#    * - C++
#      - Python
#    * - ``recvAnysource``
#      - ``recv_anysource``
#    * - ``startCoalescing``, ``endCoalescing``
#      - ``start_coalescing``, ``end_coalescing``
#    * - ``monitoredBarrier``
#      - ``monitored_barrier``
#    * - ``setTimeout``, ``getError``
#      - ``set_timeout``, ``get_error``
#    * - ``getMemoryStats``, ``supportsTensorAlloc``
#      - ``memory_stats``, ``supports_tensor_alloc``
#    * - ``eagerConnectSingleDevice``
#      - ``eager_connect_single_device``
#    * - ``setGroupUid``
#      - ``_set_group_uid``
#    * - ``setSequenceNumberForGroup``, ``getSequenceNumberForGroup``
#      - ``_set_sequence_number_for_group``, ``_get_sequence_number_for_group``
#    * - ``registerOnCompletionHook``, ``waitForPendingWorks``,
#        ``enableCollectivesTiming``
#      - ``_register_on_completion_hook``, ``_wait_for_pending_works``,
#        ``_enable_collectives_timing``
#    * - ``startTimeEstimate``, ``endTimeEstimate`` (PyTorch 2.15)
#      - ``_start_time_estimate``, ``_end_time_estimate``
#    * - ``supportsSplitting``, ``supportsCoalescing``, ``supportsShrinking``,
#        ``supportsReconfigure``, ``supportsWindow``
#      - properties: ``supports_splitting``, ``supports_coalescing``,
#        ``supports_shrinking``, ``supports_reconfigure``, ``supports_window``
#    * - ``supportsTimeEstimation``
#      - property ``_supports_time_estimate``; with 2.14 ``supports_time_estimate``
#    * - ``getBackendOptions``
#      - property ``options``
#
# A method can have two names. A program calls ``_start_coalescing``, but a class must
# override ``start_coalescing``. An override of ``_start_coalescing`` has no effect.
#
# What is not passed on
# ---------------------
#
# ``PyBackend`` in PyTorch 2.15.0 overrides most methods that a C++ backend can override.
# You can override these only in C++:
#
# * the older names of the collectives on single tensors, such as ``_allgather_base``
#   and ``alltoall_base``: override ``all_gather_single`` and ``all_to_all_single``;
# * ``gather_single`` and ``gather_into_tensor``;
# * ``supportsAbortHooks``, ``supportsCompletionHooks`` and the methods that register
#   and unregister completion hooks;
# * ``isInitialized``, ``addEphemeralTimeout``, and the two methods for the bound
#   device;
# * all methods of ``Work`` except ``wait`` and ``get_future``. ``dist.recv`` without a source
#   needs one of them: the tensor arrives, and then the call fails with
#   ``sourceRank() may only be called on work objects …``
#
# PyTorch does not always keep the Python object. With ``TORCH_DISTRIBUTED_DEBUG=DETAIL``,
# keep a reference to your backend until the group is destroyed. Otherwise its methods are lost.
#
# What it costs
# -------------
#
# Each call from C++ takes Python's global interpreter lock. While another thread of
# the rank holds the lock, the operation does not start. We measured an ``all_reduce`` that only
# sets a tensor to zero, once, on one rank, with PyTorch 2.15.0. It took about twice as long in
# Python as in the C++ of the dummy backend.
#
# The backend on this page costs much more because of its design. All data goes through the
# process of the store, and every rank reads the tensors of all ranks. Its
# operations block, so ``DistributedDataParallel`` cannot compute while it
# communicates. When your algorithm works, write it in C++. The collectives have the
# same names there, and the table above contains the names that differ.
#
# The build of this page does not run a backend without a reference to it.
