"""
Use what recent releases of PyTorch added
=========================================

After this page you can use what PyTorch 2.14 and 2.15 added for backends, in one
source that still compiles with 2.13. A small backend for one rank shows five
additions: new names of collectives, options for ``split_group``, hooks,
reconfiguration, and windows. A backend for CPUs can do without all of them, as the dummy of
this tutorial does. A backend for an accelerator needs ``split_group``, because programs bind
their groups to a device.

.. diagram:: tutorial/recent_releases/diagram

The build compiles and runs the page with one release of PyTorch. If that release lacks a
feature, the output says so.
"""

import json
import os
import tempfile
from datetime import timedelta
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.cpp_extension import load

# sphinx_gallery_start_ignore
# time limit: 180
import sys

os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
# sphinx_gallery_end_ignore
build = tempfile.TemporaryDirectory()

recent = load(
    name="recent_backend",
    sources=["recent_releases/recent_backend.cpp"],
    extra_cflags=["-O1", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra"],
    build_directory=build.name,
)
release = ".".join(torch.__version__.split(".")[:2])
print(f"PyTorch {release} has: {', '.join(recent.features) or 'none of them'}")

# %%
# Guard what is new
# -----------------
#
# A method with ``override`` does not compile if ``Backend`` has no such method.
# Since PyTorch 2.14, ``Backend.hpp`` defines one macro for each of three groups of
# methods. These macros and the version give the list that we printed:
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: features
#
# Be careful with ``C10D_BACKEND_HAS_HOOKS``. In 2.14 it means abort hooks. Completion hooks
# and ``supportsAbortHooks`` are new in 2.15, which defines the same macro with the same
# value. For them, and for all features without a macro, test the version of PyTorch in
# ``torch/version.h``:
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: guards
#
# The functions below print which feature is missing, or which error occurred:


def has(feature):
    present = feature in recent.features
    print("" if present else f"PyTorch {release} has no {feature}\n", end="")
    return present


def attempt(function, *arguments):
    try:
        function(*arguments)
    except RuntimeError as error:
        print("RuntimeError:", str(error).splitlines()[0])


# %%
# Collectives with two names
# --------------------------
#
# Since PyTorch 2.14, some virtual methods of ``Backend`` have a second name:
# ``_allgather_base`` is now also ``all_gather_single``. By default each of the two
# calls the other, so one override serves both. We override one old name and one new
# name:
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: names
#
# We call each name that the release has, on the backend itself:

dist.init_process_group("recent", store=dist.HashStore(), rank=0, world_size=1)
backend = dist.group.WORLD._get_backend(torch.device("cpu"))

for name in [
    "_allgather_base",
    "all_gather_single",
    "_reduce_scatter_base",
    "reduce_scatter_single",
]:
    method, output = getattr(backend, name, None), torch.zeros(2)
    if method:
        method(output, torch.ones(2)).wait()
    print(f"{name} {output}" if method else f"PyTorch {release} has no {name}")

# %%
# If a source must compile with 2.13, override the old name. Every release has it, and you
# need no guard. The old names are deprecated in the header, so use the new ones when you no
# longer support 2.13.
#
# If neither is overridden, the macro ``C10D_BACKEND_FORWARDING_GUARD`` in the new
# method keeps the two from calling each other without end. The error contains the
# new name. PyTorch 2.13 has only the old one, ``alltoall_base``. ``Backend.hpp``
# undefines the macro at its end, so your source cannot use it as a guard.

attempt(dist.all_to_all_single, torch.zeros(2), torch.ones(2))

dist.destroy_process_group()

# %%
# Options that can be copied
# --------------------------
#
# A backend with options of its own derives a class from ``Backend::Options``. To
# receive them, it must be registered with ``extended_api=True``. The function that
# creates the backend then takes two arguments: a description of the group, and the
# ``pg_options`` of ``init_process_group`` or null.
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: create
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: register
#
# ``split_group`` makes a child group from a parent group. Unless the program passes
# options, it takes them from ``getBackendOptions`` of the parent. It writes the name and
# the timeout of the child into them, and passes them to ``split``. It calls ``split`` also on a rank that is not
# a member of the child; there ``split`` must return ``nullptr``:
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: split
#
# Since PyTorch 2.14, ``split_group`` calls ``clone`` before it writes. The ``clone``
# of the base class makes an object of the base class, so every class that derives from
# it must override it:
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: options
#
# If the copy has another type than the original, PyTorch shares the original. We
# split a group with each of the two classes and print the options of the parent:

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
# sphinx_gallery_end_ignore

# %%
# A parent that shares its options now has the name and the timeout of its child.
# PyTorch 2.13 has no ``clone``, so this happens with both classes there.
#
# We called the method of the group. The function ``dist.split_group`` calls it as well. For a
# backend that is registered for CPUs only, the function works since PyTorch 2.15. Before, it
# raised an error.
#
# Groups on a bound device
# ------------------------
#
# A program for an accelerator passes ``device_id`` to ``init_process_group``, which binds the
# group to that device. Two functions then depend on ``supportsSplitting`` of its backend:
#
# * ``new_group`` may make its group by splitting the bound one. With NCCL, all ranks of the
#   parent take part in a split. So if ``supportsSplitting`` is true, ``new_group`` calls
#   ``perform_nocolor_split`` on the ranks outside the new group.
# * ``init_device_mesh`` with several dimensions calls ``split_group``, and does not look at
#   ``supportsSplitting`` before. So HSDP, or tensor parallelism with FSDP2, needs a backend that
#   can split.
#
# ``c10d::Backend`` has no ``perform_nocolor_split``: Python looks it up by name in the Python
# class of the backend. Give your backend a class of its own. pybind11 then finds it whenever C++
# returns the backend to Python:
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: class
#
# Our ranks do not communicate for a split, so the method does nothing. Since PyTorch 2.15, a
# group can be bound to a CPU. Only on machines with an accelerator does ``init_device_mesh``
# call ``split_group``, so we let it take the CPU for one. Our process is rank 0 of 2. It makes
# a group of rank 1 alone, and a mesh of two dimensions, first with a backend that supports
# splitting and then with one that does not:

cpu = torch.device("cpu", 0)
accelerator = {"is_available": lambda: True, "current_accelerator": lambda: torch.device("cpu")}
bound_cpus = tuple(int(x) for x in release.split(".")) >= (2, 15)
print("" if bound_cpus else f"PyTorch {release} binds no group to a CPU\n", end="")

for can_split in [True, False] if bound_cpus else []:
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
    backend = dist.group.WORLD._get_backend(cpu)
    print(type(backend), "with" if can_split else "without", "splitting:")
    with mock.patch.object(recent.Backend, "perform_nocolor_split") as noted:
        dist.new_group([1])
    print(noted.mock_calls)
    # sphinx_gallery_start_ignore
    dist.new_group([1])  # This calls what the page shows.
    # sphinx_gallery_end_ignore
    with mock.patch.multiple(torch.accelerator, **accelerator):
        attempt(lambda: print(init_device_mesh("cpu", (1, 2)).shape))
    dist.destroy_process_group()

# %%
# So a backend for an accelerator must implement ``supportsSplitting``, ``split`` and
# ``getBackendOptions``, and a Python class with ``perform_nocolor_split``. Gloo supports
# splitting and has no such method: with a bound CPU, its ``new_group`` raises an
# ``AttributeError`` in PyTorch 2.15 on the ranks outside the new group.
#
# Hooks for errors and for completed operations
# ---------------------------------------------
#
# A *hook* is a function that a backend keeps and calls. The backend calls the
# *abort hooks* before it aborts after an error or a timeout. Since PyTorch 2.14,
# ``register_abort_hook`` of a process group passes a Python function to the backend:
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: abort-hooks
#
# Since PyTorch 2.15, a backend calls the *completion hooks* for each operation that
# succeeded, and never for one that failed:
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: completion-hooks
#
# An abort hook can be a Python function, as on this page: our thread then takes Python's
# interpreter lock to call it. A completion hook must not, according to ``Hooks.hpp``, because a
# backend may hold a lock of its own in the call.
#
# The hook receives the key of a ``Work``, by which c10d finds the operation. The ``Work`` may
# already be freed when the backend calls the hook. According to ``Work.hpp``, such a backend
# must override ``getCompletionKey`` and never use a key twice:
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: work
#
# Our two collectives call this function, which calls the hooks:
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: copy
#
# Since PyTorch 2.15, c10d registers both kinds itself when it makes a group. A health
# check registers an abort hook, and the *flight recorder* one of each kind. The
# flight recorder keeps a record of each operation for backends that keep no records
# themselves. We run an operation that succeeds and one that fails, and print
# the records. In the second group, an option turns off our completion hooks:

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

# %%
# With completion hooks, the records show which operation succeeded and which one
# failed. Without them, the flight recorder retires each record as soon as the
# operation has started, and both look the same. ``FlightRecorderHook.hpp`` explains
# the two cases.
#
# The abort hook of the flight recorder writes the records to a file, once in each
# process, and reports it on stderr. The name of the file is ``TORCH_FR_DUMP_TEMP_FILE``
# followed by the rank. Before PyTorch 2.15 there is no such file:

print([path.name for path in Path(build.name).glob("records*")])

# %%
# Groups whose members change
# ---------------------------
#
# Since PyTorch 2.14, a group can receive other members, for example after a failure, and
# remain the same object. Each process takes a handle, a string, from its backend. The
# program must send the handles to all members. Then each member calls ``reconfigure`` with
# all handles. In a list, the position of its own handle is its new rank. With a set, the
# backends choose the ranks. A backend can change ``rank_`` and ``size_``, which are
# constants in 2.13.
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: reconfigure
#
# ``init_process_group(enable_reconfigure=True)`` makes a group that is not initialized
# before the first ``reconfigure``. c10d only passes the flag on; the backend must
# implement it:
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: initialized
#
# The names of the functions in Python begin with an underscore, and their documentation
# calls them experimental. No other Python code of PyTorch calls them. Below, the other
# member has an invented handle. Our backend sends nothing, so it needs no such
# process. The last call repeats a uuid, which the header forbids:

if has("reconfigure"):
    dist.init_process_group(
        "recent",
        store=dist.HashStore(),
        rank=0,
        world_size=1,
        enable_reconfigure=True,
    )
    attempt(dist.all_gather_single, torch.zeros(2), torch.ones(2))
    handle = dist._get_reconfigure_handle()
    print("handle:", handle)

    dist._reconfigure(uuid=1, handles={handle}).wait()
    output = torch.zeros(2)
    dist.all_gather_single(output, torch.ones(2))
    print(output)

    dist._reconfigure(uuid=2, handles=["another rank", handle]).wait()
    print("rank", dist.get_rank(), "of", dist.get_world_size())
    attempt(dist._reconfigure, 2, [handle])
    # sphinx_gallery_start_ignore
    assert dist._supports_reconfigure()
    # sphinx_gallery_end_ignore
    dist.destroy_process_group()

# %%
# Windows
# -------
#
# A *window* is memory of one rank that other ranks can read and write while that rank
# does something else. Since PyTorch 2.14, ``dist._new_window`` calls ``new_window`` of
# the backend, which returns a window. According to ``Backend.hpp``, all ranks must call it
# in the same order.
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: new-window
#
# Each method of ``Window`` that you do not override throws. Our window writes to the
# memory and maps it, but has no signals. In ``Window.hpp``, the attribute ``UNIFIED`` means
# "a single coherent view of the window across host and device":
#
# .. listing:: gallery/tutorial/recent_releases/recent_backend.cpp
#    :part: window
#
# With one rank, the rank writes to its own window. ``put`` takes the tensor, the rank,
# the position of the first element, and ``async_op``:

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
build.cleanup()
# sphinx_gallery_end_ignore
