"""
Step 3: Let PyTorch find the backend
====================================

After this page you can use an installed backend by its name alone, and you know what
PyTorch does if it cannot find or load a backend.

Since PyTorch 2.14, a program does not need to import the module of a backend. For a name
that no backend has registered, PyTorch searches the entry points of the group
``torch.distributed.backends``. An *entry point* is a line in the metadata of an installed
package. It connects a name with an object in a module. The entry point of the dummy is in
``pyproject.toml``:

.. listing:: extension/dummy_collectives/pyproject.toml
   :part: entry-point

.. diagram:: tutorial/step_3_found_by_name/diagram

PyTorch imports the module ``dummy_collectives`` and calls the function ``register``
in it. PyTorch does not find a module without such metadata, for example one that was
compiled while Python runs. Such a module registers its backend when a program imports it.
"""

# %%
# Five calls that look the backend up
# -----------------------------------
#
# The first lookup that succeeds registers the backend for the whole process. Each call
# below therefore needs a new process. In the program, each rank is a separate job, and names
# a backend in one of these ways:
#
# .. listing:: gallery/tutorial/step_3_found_by_name/found_by_name.py
#    :part: ways
#
# No backend has the last name. The program does not import ``dummy_collectives``. Each rank
# prints whether PyTorch has imported it:
#
# .. listing:: gallery/tutorial/step_3_found_by_name/found_by_name.py
#    :part: try

from launcher import launch

launch("step_3_found_by_name/found_by_name.py", ranks=6)

# %%
# With PyTorch 2.14 and later, all five calls find the backend. With
# ``cpu:gloo,cuda:dummy`` the tensor keeps its ones, because gloo handles CPU tensors and
# sums over one rank.
#
# PyTorch 2.13 does not look for entry points. With that release,
# ``is_backend_available`` returns ``False``, and the other four calls end with an
# ``AssertionError``, as the call with the name ``nobody`` does here. They print a warning
# first, unless the argument names a device. A program for 2.13 must import the module before
# it uses the name. This works with later releases, too.
#
# When the entry point does not work
# ----------------------------------
#
# We make three packages that do not work, in a temporary folder. PyTorch needs only a module
# and two files of metadata to find a package:

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
# If no installed package has the name, ``is_backend_available`` returns ``False``. Since
# PyTorch 2.14, it raises an exception if the package is installed and does not work:

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
# PyTorch 2.14 and later have four cases. The build does not run the last one:
#
# * The function raises an exception: the program receives that exception, unchanged.
# * The module or the function cannot be loaded: a ``RuntimeError``, with the reason as
#   its cause.
# * The function returns without registering the name: a ``RuntimeError``.
# * The entry point names an object that is not callable: a ``TypeError``.
#
# ``init_process_group`` raises the same exceptions. The backend is not registered, and
# the next call tries again.
#
# Load one entry point, not all
# -----------------------------
#
# PyTorch loads only the entry point with the right name. A program that searches a backend
# itself, for example with PyTorch 2.13, can do the same:

from importlib.metadata import entry_points

[entry_point] = entry_points(group="torch.distributed.backends", name="dummy")
print("registered before:", "dummy" in dist.Backend.backend_list)
register = entry_point.load()
register()
print("registered after: ", "dummy" in dist.Backend.backend_list)

# %%
# A program may list the names of all entry points, but it must not load all of them. This
# would import modules of packages that the program does not use, and each import can
# fail:

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
# We made ``unloadable`` above. PyTorch 2.15.0 adds another one: its own entry point
# ``nccl4py`` names a module that does not exist.
