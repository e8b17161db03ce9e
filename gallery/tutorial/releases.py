"""
From PyTorch 2.13 to 2.15: what to change, what is new
======================================================

The C++ interface of c10d changes between minor releases, so a backend may need edits before it compiles with the next
one. The first half of this page lists what to change. The second half shows how one source uses what PyTorch 2.14 and
2.15 added for backends, and still compiles with 2.13: options and split groups, hooks, windows, and groups whose
members change.

A backend for CPUs can do without these additions. A backend for an accelerator needs the options and ``split``,
because programs split groups when they make a mesh of devices.

.. diagram:: tutorial/releases/diagram

From 2.13 to 2.14
-----------------

Check whether your source needs an edit for these:

Change paths of headers
   ``PyProcessGroup.hpp`` is now in ``py/``, ``TCPStoreBackend.hpp`` in ``store/``, ``NCCLXStub.hpp`` in ``nccl/``,
   ``GlooDeviceFactory.hpp`` and ``ProcessGroupGlooDetail.hpp`` in ``gloo/``, ``UCCTracing.hpp`` and ``UCCUtils.hpp`` in
   ``ucc/``. The folder ``control_collectives`` is gone.

Pass the right rank and size to ``Backend``
   ``get_rank`` and ``get_world_size`` now return the rank and size of the default backend. Before, the group had its
   own copy.

Override ``clone`` of your options
   Otherwise a child of ``split_group`` overwrites the name and timeout of its parent: :ref:`copied-options`.

These change what you or your users see:

Name your devices
   ``register_backend`` now takes ``devices="npu"`` as ``devices=["npu"]``. Before, only a list could make your backend
   the default of a device. If you omit ``devices``, it assumes the CPU and the current accelerator; it no longer
   always includes ``cuda``.

Expect a warning from ``setTimeout``
   If a backend does not override it, PyTorch logs a warning and ignores the new timeout. Before, it raised
   an exception.

Expect the accelerator's backend as the default
   In a group such as ``cpu:gloo,cuda:dummy``, the default backend is now that of the accelerator. The group takes
   its rank, size, abort hooks and windows from it. Such a group cannot be reconfigured.

These are new, and optional:

Declare an entry point
   PyTorch then imports your installed package when a program names the backend, so programs need no import:
   :doc:`step-3-found-by-name`.

Override ``all_gather_single`` or ``_allgather_base``
   ``all_gather_single``, ``reduce_scatter_single``, ``all_to_all_single`` and the coalesced forms of the first two
   are virtual methods now, each of which has an old name, too: :ref:`two-names`. ``gather_single`` is a new operation.

Write a backend in Python
   A class in Python that derives from c10d's ``Backend`` can be a backend: :doc:`step-4-backend-in-python`.

From 2.14 to 2.15
-----------------

Check whether your source needs an edit for these:

Override ``getBackendName``
   The flight recorder, PyTorch's record of the latest operations, calls it in ``init_process_group``, which fails with
   an internal assertion if the method is missing. :doc:`step-4-unimplemented-collective` shows the message.

Implement an all-gather into one tensor
   ``all_gather_object`` now calls ``all_gather_single``, so it fails on a backend that has only ``allgather``, as do
   distributed checkpoints. Override ``all_gather_single`` or ``_allgather_base``, and keep ``allgather``, which
   ``gather_object`` still calls. Pipelining now calls ``allreduce``, with the reduction ``MIN``:
   :doc:`what-a-backend-needs`.

Clone the store in ``split``
   The store that ``split`` gets may now share the parent's connection; in 2.14 it had its own. So call
   ``clone`` on it before you wait for its keys or change its timeout.

Override ``isInitialized`` if you connect lazily
   It returns ``true`` by default. ``Backend.hpp`` requires the override, because a caller of ``split`` uses it to
   verify that the parent has a communicator.

Override ``supportsAbortHooks``
   Return ``true`` if you override ``registerAbortHook``. With ``false``, the default, PyTorch registers neither the
   abort hook of its health check nor that of its flight recorder.

These change what you or your users see:

Expect another implementation behind ``nccl``
   ``nccl`` is now the implementation that has been available as ``nccl2`` since 2.14. The previous one is
   ``nccl-legacy``; with ``TORCH_DIST_USE_NCCL2=0``, ``nccl`` means that one again.

These are new, and optional:

Call completion hooks
   PyTorch attaches its flight recorder to the groups of backends that keep no records themselves. Without
   completion hooks, it cannot distinguish an operation that hangs from one that has completed:
   :ref:`both-kinds-of-hooks`.

Give each ``Work`` a key
   ``Work::getCompletionKey`` is new. Override it if an operation can complete after its ``Work`` was freed, and
   never use a key twice.

Split groups on CPUs
   ``torch.distributed.split_group`` works for a backend that is registered for CPUs alone. It no longer
   needs a ``device_id`` in ``init_process_group``, which now also accepts ``cpu:0``.

One source for three releases
-----------------------------

A method with ``override`` does not compile if ``Backend`` has no such method. So that you can guard your
overrides, ``Backend.hpp`` has since PyTorch 2.14 defined one macro for each of three groups of methods:
``C10D_BACKEND_HAS_RECONFIGURE``, ``C10D_BACKEND_HAS_WINDOW`` and ``C10D_BACKEND_HAS_HOOKS``. For
features without a macro, test the version of PyTorch in ``torch/version.h``:

.. listing:: gallery/tutorial/releases/recent_backend.cpp
   :part: guards

``C10D_BACKEND_HAS_HOOKS`` does not distinguish the releases: in 2.14 it means abort hooks, while 2.15, which adds
completion hooks and ``supportsAbortHooks``, defines it with the same value. Test the version for these additions of
2.15, too.

The rest of the page uses one small backend for one rank, ``recent``, whose source tests for these additions. The
program compiles it, and prints which features it has with the installed release:
"""

import json
import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.cpp_extension import load

# sphinx_gallery_start_ignore
# time limit: 600
import sys
from unittest import mock

from torch.distributed.device_mesh import init_device_mesh

os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
# sphinx_gallery_end_ignore
build = tempfile.TemporaryDirectory()

recent = load(
    name="recent_backend",
    sources=["releases/recent_backend.cpp"],
    extra_cflags=["-O1", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra"],
    build_directory=build.name,
)
release = ".".join(torch.__version__.split(".")[:2])
print(f"PyTorch {release} has: {', '.join(recent.features) or 'none of them'}")

# %%
# The sections below run one feature after another. So that the program also runs with an older release, two functions
# print which feature is missing, or which error occurred:


def has(feature):
    present = feature in recent.features
    print("" if present else f"PyTorch {release} has no {feature}\n", end="")
    return present


def attempt(function, *arguments):
    try:
        function(*arguments)
    except RuntimeError as error:
        print("RuntimeError:", str(error).splitlines()[0])


# sphinx_gallery_start_ignore
def error_of(function, *arguments):
    try:
        function(*arguments)
    except RuntimeError as error:
        return str(error)
    return ""


dist.init_process_group("recent", store=dist.HashStore(), rank=0, world_size=1)
backend = dist.group.WORLD._get_backend(torch.device("cpu"))
names = ["_allgather_base", "_reduce_scatter_base"]
if release >= "2.14":
    names += ["all_gather_single", "reduce_scatter_single"]
for name in names:
    output = torch.zeros(2)
    getattr(backend, name)(output, torch.ones(2)).wait()
    assert output.tolist() == [1, 1], name
error = error_of(dist.all_to_all_single, torch.zeros(2), torch.ones(2))
assert ("all_to_all_single" if release >= "2.14" else "alltoall_base") in error, error
dist.destroy_process_group()
# sphinx_gallery_end_ignore

# %%
# .. _two-names:
#
# Collectives with two names
# --------------------------
#
# Since PyTorch 2.14, some virtual methods of ``Backend`` have a second name: ``_allgather_base`` is now
# also ``all_gather_single``. Each of the two calls the other by default, so one override serves both. If
# your source must compile with 2.13, override the old name, which every release has. The header
# deprecates the old names, so use the new ones once you no longer support 2.13. Our backend overrides one
# of each kind:
#
# .. listing:: gallery/tutorial/releases/recent_backend.cpp
#    :part: names
#
# All names that the release has work on this backend. If neither name of a method is overridden, the error
# contains the new one.
#
# .. _copied-options:
#
# Options that can be copied
# --------------------------
#
# A backend with options of its own derives a class from ``Backend::Options``, and is registered with
# ``extended_api=True``. The function that creates it then receives the ``pg_options`` of
# ``init_process_group``, or null, beside a description of the group:
#
# .. admonition:: Creation and registration
#    :collapsible: closed
#
#    .. listing:: gallery/tutorial/releases/recent_backend.cpp
#       :part: create
#
#    .. listing:: gallery/tutorial/releases/recent_backend.cpp
#       :part: register
#
# ``split_group`` makes a child group. Unless the program passes options, PyTorch copies those that
# ``getBackendOptions`` of the parent returns. It writes the name and the timeout of the child into the copy, and
# passes the copy to ``split``. On a rank outside the child, ``split`` must return ``nullptr``. The next section
# explains ``perform_nocolor_split``, with which this listing ends:
#
# .. listing:: gallery/tutorial/releases/recent_backend.cpp
#    :part: split
#
# Since PyTorch 2.14, the copy is made by ``clone``, which in the base class makes an object of the base class.
# Therefore every derived class must override ``clone``, even if it adds no fields. If the copy has another type
# than the original, PyTorch shares the original, as 2.13 always does:
#
# .. listing:: gallery/tutorial/releases/recent_backend.cpp
#    :part: options
#
# To see what happens without ``clone``, we split a group with each of these classes, and print the options of the
# parent. A second split, into a group without this rank, shows the ``nullptr``:

for options in [recent.Options(), recent.OptionsWithoutClone()]:
    dist.init_process_group(
        "recent", store=dist.HashStore(), rank=0, world_size=1, pg_options=options
    )
    dist.group.WORLD.split_group([0], timeout=timedelta(seconds=5), group_name="child")
    print(f"{type(options).__name__}: {options.group_name!r}, {options._timeout}")
    print("split without this rank:", dist.group.WORLD.split_group([1]))
    dist.destroy_process_group()

# sphinx_gallery_start_ignore
dist.init_process_group("recent", store=dist.HashStore(), rank=0, world_size=1)
if release >= "2.15":
    dist.split_group(split_ranks=[[0]])
dist.destroy_process_group()

# Rank 0 of 2 makes a group of rank 1 alone, and a mesh of two dimensions. CPUs are the accelerator,
# because init_device_mesh calls split_group only where there is one.
cpu = torch.device("cpu", 0)
accelerator = {"is_available": lambda: True, "current_accelerator": lambda: torch.device("cpu")}
plugin = dist.Backend._plugins["RECENT"]
parents = []


def note_parent(group, given):
    parents.append(group.split_from)
    return plugin.creator_fn(group, given)


for can_split in [True, False] if release >= "2.15" else []:
    options = recent.Options()
    options.can_split = can_split
    dist.init_process_group(
        "recent",
        store=dist.HashStore(),
        rank=0,
        world_size=2,
        pg_options=options,
        device_id=cpu,
    )
    with mock.patch.object(recent.Backend, "perform_nocolor_split") as noted:
        dist.new_group([1])
    assert noted.mock_calls == ([mock.call(cpu)] if can_split else [])
    dist.new_group([1])
    # On a member, new_group calls the create function with the parent, and not split.
    with mock.patch.dict(dist.Backend._plugins, RECENT=plugin._replace(creator_fn=note_parent)):
        dist.new_group([0])
    assert parents.pop() is (dist.group.WORLD._get_backend(cpu) if can_split else None)
    with mock.patch.multiple(torch.accelerator, **accelerator):
        error = error_of(init_device_mesh, "cpu", (1, 2))
    assert ("its backend does not support splitting" in error) != can_split, error
    dist.destroy_process_group()
# sphinx_gallery_end_ignore

# %%
# Without ``clone``, the parent now has the name and the timeout of its child. A backend that reads its timeout there
# would give up too early.
#
# Groups on a bound device
# ------------------------
#
# A program for an accelerator passes ``device_id`` to ``init_process_group``, which binds the group to that
# device. Then ``init_device_mesh`` with several dimensions calls ``split_group`` without looking at
# ``supportsSplitting``. So hybrid sharding, or tensor parallelism with FSDP2, needs a backend that can split.
# :doc:`/accelerators/groups-and-meshes` explains this.
#
# ``new_group`` never calls ``split``. If ``supportsSplitting`` is true, and the new group has the same backend,
# PyTorch calls one of two functions instead:
#
# * on members of the new group, the create function, with the backend of the default group in ``split_from`` (since
#   PyTorch 2.14);
# * on the other ranks, ``perform_nocolor_split`` of the backend.
#
# Libraries such as NCCL split a communicator by a collective call, which needs all ranks of the parent. So make this
# call in the create function and in ``perform_nocolor_split``, or in neither. If only ``perform_nocolor_split`` makes
# it, the ranks outside the new group wait forever for its members.
#
# ``c10d::Backend`` has no ``perform_nocolor_split``: Python looks it up by name in the Python class of
# the backend. Therefore give your backend a class of its own, which pybind11 finds whenever C++ returns
# the backend to Python. Our create function ignores ``split_from``, so the method does nothing:
#
# .. listing:: gallery/tutorial/releases/recent_backend.cpp
#    :part: class
#
# .. _both-kinds-of-hooks:
#
# Hooks for errors and for completed operations
# ---------------------------------------------
#
# A *hook* is a function that a backend keeps and calls, so that tools learn what happens inside it. The
# backend calls its *abort hooks* (since PyTorch 2.14) before it aborts after an error or a timeout, and
# its *completion hooks* (since 2.15) for each operation that succeeded, never for one that failed.
#
# A completion hook receives the key of a ``Work``, by which c10d finds the operation. If the ``Work`` may
# already be freed by then, ``Work.hpp`` demands that the backend override ``getCompletionKey``, and never
# use a key twice.
#
# .. admonition:: The code of the hooks, of the ``Work`` and of the collectives
#    :collapsible: closed
#
#    .. listing:: gallery/tutorial/releases/recent_backend.cpp
#       :part: abort-hooks
#
#    .. listing:: gallery/tutorial/releases/recent_backend.cpp
#       :part: completion-hooks
#
#    One failure may call an abort hook more than once, so ``Hooks.hpp`` asks for one that can run again. It can be a
#    Python function, as on this page, so our thread takes Python's interpreter lock to call it. A completion hook
#    must not take that lock, according to ``Hooks.hpp``, because a backend may hold a lock of its own in the call.
#
#    .. listing:: gallery/tutorial/releases/recent_backend.cpp
#       :part: work
#
#    .. listing:: gallery/tutorial/releases/recent_backend.cpp
#       :part: copy
#
# Since PyTorch 2.15, c10d registers hooks of its own when it makes a group, for example those of the *flight
# recorder*. For a backend that keeps no records itself, the recorder keeps one of each operation. Before an abort, it
# writes the records to a file, whose name is ``TORCH_FR_DUMP_TEMP_FILE`` followed by the rank.
#
# We run an operation that succeeds and one that fails, first in a group with completion hooks and then in one
# without, and print the records:

os.environ["TORCH_FR_DUMP_TEMP_FILE"] = str(Path(build.name, "records_of_rank_"))


def print_records():
    text = torch._C._distributed_c10d._dump_fr_trace_json(backend="recent")
    for entry in json.loads(text)["entries"]:
        sizes = f"{entry['input_sizes'][0]} to {entry['output_sizes'][0]}:"
        print(sizes, entry["state"], "retired" if entry["retired"] else "not retired")


# sphinx_gallery_start_ignore
# expected stderr: FlightRecorderHook: dumping trace on collective failure
# sphinx_gallery_end_ignore
abort_hooks = has("abort hooks")
completion_hooks = has("completion hooks")

for report in [True, False] if completion_hooks else [True]:
    if completion_hooks:  # Forget what earlier groups did.
        torch._C._distributed_c10d._reset_fr_trace(backend="recent")
    options = recent.Options()
    options.report_completion = report
    dist.init_process_group(
        "recent", store=dist.HashStore(), rank=0, world_size=1, pg_options=options
    )
    if abort_hooks:
        dist.group.WORLD.register_abort_hook(1, lambda: print("our abort hook"))
    dist.all_gather_single(torch.zeros(2), torch.ones(2))
    attempt(dist.all_gather_single, torch.zeros(5), torch.ones(2))
    if completion_hooks:
        print("with" if report else "without", "completion hooks:")
        print_records()
    if abort_hooks:
        dist.group.WORLD.unregister_abort_hook(1)
    dist.destroy_process_group()

# sphinx_gallery_start_ignore
records = [path.name for path in Path(build.name).glob("records*")]
assert records == (["records_of_rank_0"] if completion_hooks else [])
# sphinx_gallery_end_ignore

# %%
# With completion hooks, the records tell the operation that succeeded from the one that failed. A record is *retired*
# when the recorder no longer expects news of its operation. Without the hooks, the recorder retires each record as soon
# as the operation has started, so both look the same.
#
# Windows
# -------
#
# A *window* is memory of one rank that other ranks can read and write while that rank does something
# else. Since PyTorch 2.14, ``dist._new_window`` calls ``new_window`` of the backend, which all ranks must
# call in the same order, according to ``Backend.hpp``. The memory of our window is a tensor, into which its ``put``
# copies another one. A method of ``Window`` that you do not override throws an error:
#
# .. admonition:: The window
#    :collapsible: closed
#
#    .. listing:: gallery/tutorial/releases/recent_backend.cpp
#       :part: new-window
#
#    .. listing:: gallery/tutorial/releases/recent_backend.cpp
#       :part: window
#
# With one rank, the rank writes to its own window. ``put`` takes the tensor, the rank, the position of
# the first element, and ``async_op``. The program prints the memory after ``put``, one element of it, the kind
# of access, and the error of ``signal``, which our window does not override:

if has("windows"):
    dist.init_process_group("recent", store=dist.HashStore(), rank=0, world_size=1)
    memory = torch.zeros(4)
    window = dist._new_window(memory)
    window.put(torch.tensor([7.0, 8.0]), 0, 1, False).wait()
    print(memory)
    print(window.map_remote_tensor(0)[1])
    print(window.get_attr(0).access_type)
    attempt(window.signal, 0, False)
    # sphinx_gallery_start_ignore
    assert dist._supports_window()
    # sphinx_gallery_end_ignore
    dist.destroy_process_group()

# sphinx_gallery_start_ignore
if "reconfigure" in recent.features:
    dist.init_process_group(
        "recent",
        store=dist.HashStore(),
        rank=0,
        world_size=1,
        enable_reconfigure=True,
    )
    output = torch.zeros(2)
    error = error_of(dist.all_gather_single, output, torch.ones(2))
    assert "reconfigure() comes first" in error, error
    handle = dist._get_reconfigure_handle()

    dist._reconfigure(uuid=1, handles={handle}).wait()
    dist.all_gather_single(output, torch.ones(2))
    assert output.tolist() == [1, 1]

    # The handle of the other member is invented: this backend sends nothing.
    dist._reconfigure(uuid=2, handles=["another rank", handle]).wait()
    assert (dist.get_rank(), dist.get_world_size()) == (1, 2)
    error = error_of(dist._reconfigure, 2, [handle])
    assert "this group had the uuid 2 before" in error, error
    assert dist._supports_reconfigure()
    dist.destroy_process_group()

build.cleanup()
# sphinx_gallery_end_ignore

# %%
# The methods that our window overrides work, and the error names the one that it lacks.
#
# Groups whose members change
# ---------------------------
#
# Since PyTorch 2.14, a group can receive other members, for example after a failure, and remain the same object:
#
# 1. Each process takes a handle, a string, from its backend.
# 2. The program sends the handles to all members.
# 3. Each member calls ``reconfigure`` with all handles, and with a ``uuid`` that the group has not had before.
#
# If a member passes a list of handles, its new rank is the position of its own handle; if it passes a set, the
# backends choose the ranks. The backend writes its new rank and size to ``rank_`` and ``size_``, which are constants
# in 2.13.
#
# With ``enable_reconfigure=True``, ``init_process_group`` makes a group that is not initialized before the first
# ``reconfigure``. Because c10d only passes the flag on, the backend must check it before each collective.
#
# .. admonition:: The change of members, and the check of the flag
#    :collapsible: closed
#
#    .. listing:: gallery/tutorial/releases/recent_backend.cpp
#       :part: reconfigure
#
#    .. listing:: gallery/tutorial/releases/recent_backend.cpp
#       :part: initialized
#
# The functions in Python, such as ``dist._reconfigure``, begin with an underscore, their documentation calls them
# experimental, and no other Python code of PyTorch calls them. So implement ``reconfigure`` only if you know a program
# that calls these functions.
#
# What was verified
# -----------------
#
# To show that one source can serve all three releases, a test compiles the extensions of this site with each of them,
# from the same sources and with ``-Wall -Wextra``:
#
# .. csv-table::
#    :file: releases/releases.csv
#    :header-rows: 1
#
# Compiles
#    ✓ means that all extensions compiled without errors or warnings.
#
# Tests, Passed, Failed
#    The tests of the :doc:`dummy <basics>`, the minimal backend of this tutorial, on a computer without a GPU: how
#    many ran, how many of them passed, and the names of those that failed. The samples test the other backends.
#
# Samples
#    How many samples, the programs of this site's pages, ran and showed the committed output.
#
# To check the table, run ``make test-releases``, which repeats these checks and reports what differs.
#
# Prepare for the next release
# ----------------------------
#
# A new release can break a backend visibly, when it no longer compiles, or silently, when it inherits new methods. So
# audit the backend with the headers of that release, of which you need only ``Backend.hpp``. The suite
# ``c10d-conformance`` lists what your backend overrides and inherits, what the headers change for it, and where
# PyTorch's Python asks for the name of a backend:
#
# .. not-executed::
#
#    ``mine``, ``my_module`` and ``nightly`` stand for your backend and for another installed PyTorch.
#
#    .. code-block:: console
#
#       $ c10d-conformance audit --backend mine --import my_module --headers nightly/torch/include
#
# One proposal would break most backends: the method ``capabilities`` replaces the virtual ``supportsSplitting`` and
# five methods like it (`pytorch#193023 <https://github.com/pytorch/pytorch/pull/193023>`_). PyTorch 2.15 does not
# have this method. With it, the proposal defines the macro ``C10D_BACKEND_HAS_CAPABILITIES``. So that our backend
# compiles with and without the method, it has code for both cases:
#
# .. listing:: gallery/tutorial/releases/recent_backend.cpp
#    :part: capabilities
#
# To compile both, the next program writes our sketch of the proposal into a copy of the installed header:
#
# .. admonition:: The sketch, which is no file of PyTorch
#    :collapsible: closed
#
#    .. listing:: gallery/tutorial/releases/sketch_of_capabilities.hpp
#       :part: sketch
#
# The program audits ``shm``, the backend of this site for shared memory, with that copy. Then it compiles our backend
# with the copy, with and without the guard:

from launcher import run_program

output = run_program("releases/next_release.py", timeout=500)

# %%
# The audit finds the method that is no longer virtual, and the new method, which ``shm`` would inherit, so that it
# would report no capability at all. Our backend compiles with the copy only because of its guard. So before you move
# your backend to a new release, audit it with the headers of that release, and guard the overrides that the audit names.
#
# Not run here: a ``split`` that waits for keys on the connection of the parent, and PyTorch 2.16. Whether it will
# have ``capabilities``, and the names in ``BackendCapability``, were not verified.
