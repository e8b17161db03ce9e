"""
Load the backend by its name
============================

Users of your backend should not have to change their programs. Since PyTorch 2.14, they only name an
installed backend, and PyTorch imports it. This page shows which calls do that, and which errors your users
see if PyTorch cannot find or load the backend.

PyTorch finds the package by an *entry point*, a line in the metadata of an installed package that connects a name with
an object in a module. If no backend has registered a name, PyTorch looks for it among the entry points of the group
``torch.distributed.backends``. That of the dummy is in ``pyproject.toml``:

.. listing:: extension/dummy_collectives/pyproject.toml
   :part: entry-point

.. diagram:: tutorial/step_3_found_by_name/diagram

With this entry point, PyTorch imports the module ``dummy_collectives`` and calls the function ``register`` in it. A
module that was compiled at run time has no such metadata, so PyTorch cannot find it, and a program must import it.

.. note::

   PyTorch 2.13 does not look for entry points, so a program for it must import the module before it uses
   the name. This works with later releases, too.
"""

# %%
# Calls that find the backend
# ---------------------------
#
# Several functions of ``torch.distributed`` take the name of a backend, and all of them should find it. Because the
# first lookup that succeeds registers the backend for the whole process, each call needs a new process. Therefore each
# rank of the program is a separate job, and names a backend in one of these ways:
#
# .. listing:: gallery/tutorial/step_3_found_by_name/found_by_name.py
#    :part: ways
#
# No backend has the last name, ``nobody``. Because the program itself does not import ``dummy_collectives``, each
# rank can print whether PyTorch has done so:
#
# .. listing:: gallery/tutorial/step_3_found_by_name/found_by_name.py
#    :part: try

from launcher import launch

launch("step_3_found_by_name/found_by_name.py", ranks=6)

# %%
# All calls but the last find the backend, and print ``dummy_collectives imported: True``. With ``cpu:gloo,cuda:dummy``,
# the result is ``[1.0, 1.0]`` and not zeros, because gloo handles CPU tensors and sums over one rank. The call with
# ``nobody`` shows what a user sees if the package is not installed: the warning ``Device capability of nobody
# unknown``, then ``AssertionError: Unknown backend type nobody``.
#
# When the entry point does not work
# ----------------------------------
#
# An entry point can fail in several ways, and a user needs an error that tells them apart. To see these
# errors, we make three broken packages in a temporary folder. PyTorch needs only a module and two files of
# metadata to find each of them:

import sys
import tempfile
from pathlib import Path

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)


def install(name, code):
    """Write a module, and the metadata that pip would write."""
    (folder / f"{name}.py").write_text(code)
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        f"[torch.distributed.backends]\n{name} = {name}:register\n"
    )


install("raising", "def register():\n    raise OSError('no such network')\n")
install("unloadable", "import a_library_that_is_missing\n")
install("forgetful", "def register():\n    pass\n")
sys.path.append(str(folder))

# %%
# ``is_backend_available`` tells a missing package from a broken one. It returns ``False`` if no installed package has
# the name. If the package is installed but does not work, it raises an exception since PyTorch 2.14:

import torch.distributed as dist

# sphinx_gallery_start_ignore
sys.path.append(str(folder))  # sphinx-gallery takes it away after each block.
# sphinx_gallery_end_ignore
for name in ["raising", "unloadable", "forgetful", "nobody"]:
    try:
        print(f"{name}: {dist.is_backend_available(name)}")
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}")
        print("    caused by:", repr(error.__cause__))

# sphinx_gallery_start_ignore
import torch

for name in ["raising", "unloadable", "forgetful"] * 2 if torch.__version__ >= "2.14" else []:
    try:
        dist.init_process_group(name, store=dist.HashStore(), rank=0, world_size=1)
    except (OSError, RuntimeError):
        assert name not in dist.Backend.backend_list
    else:
        raise AssertionError(f"{name} started a group")
# sphinx_gallery_end_ignore

# %%
# The packages ``raising``, ``unloadable`` and ``forgetful`` show three cases, in this order:
#
# * The function raises an exception, which the program receives unchanged. Use this to say what your
#   backend lacks, for example a device.
# * The module or the function cannot be loaded, for example because it was built for another release. The
#   program receives a ``RuntimeError``, with the reason as its cause.
# * The function returns without registering the name, which is a ``RuntimeError``, too.
#
# ``init_process_group`` raises the same exceptions. Because the backend is then not registered, the next
# call tries again.
#
# Load one entry point, not all
# -----------------------------
#
# PyTorch loads only the entry point with the right name. A program that looks for a backend itself, for
# example with PyTorch 2.13, can do the same:

from importlib.metadata import entry_points

[entry_point] = entry_points(group="torch.distributed.backends", name="dummy")
print("registered before:", "dummy" in dist.Backend.backend_list)
register = entry_point.load()
register()
print("registered after: ", "dummy" in dist.Backend.backend_list)

# %%
# A program may list the names of all entry points, but it must not load all of them. That would import
# modules of packages that the program does not use, and each import can fail:

# sphinx_gallery_start_ignore
sys.path.append(str(folder))  # sphinx-gallery takes it away after each block.
# sphinx_gallery_end_ignore
failing = []
for entry_point in entry_points(group="torch.distributed.backends"):
    try:
        entry_point.load()
    except ImportError as error:
        failing.append(f"{entry_point.name}: {error}")
print(*sorted(failing), sep="\n")

# sphinx_gallery_start_ignore
temporary.cleanup()
# sphinx_gallery_end_ignore

# %%
# We made ``unloadable`` above, but ``nccl4py`` comes from PyTorch 2.15.0 itself, and names a module that does not
# exist. So loading all entry points can fail even where every backend is installed correctly. Load only the one with
# the right name, as PyTorch does.
