"""
Step 3: Build and install the extension
=======================================

After this page you can build the C++ into a Python package and install it.

The build of this site runs every command that follows a ``$``. It installs the package into a scratch
environment.

.. diagram:: tutorial/step_3_build_and_install/diagram

The build script
----------------

``setup.py`` names the sources and the flags. :mod:`torch.utils.cpp_extension` adds the
paths of PyTorch's headers and libraries and the C++ standard that they need, and compiles
with ninja:

.. listing:: extension/dummy_collectives/setup.py
   :part: setup

``CppExtension`` is enough for tensors of every device, because ATen's operations choose the code
for the device. Use ``CUDAExtension`` only if your sources call CUDA's runtime or contain kernels.
It adds the headers and libraries of the CUDA toolkit, and its constructor raises an ``OSError``
if there is no toolkit. Choose it for all builds or for none, and not by
``torch.cuda.is_available()``: a wheel must not depend on the GPU of the computer that builds it.

A backend for real hardware links its communication library here, with ``library_dirs`` and
``libraries``. So that the extension also finds the library when it is imported, it needs a run path, which
:doc:`/library/several-hosts` explains. `Mooncake <https://github.com/kvcache-ai/Mooncake/tree/main/mooncake-pg>`__ is an
example of such a backend in a repository of its own.

``pyproject.toml`` describes what the build needs and what the package is. It leaves the requirement
on PyTorch to ``setup.py``, which knows with which release it compiles:

.. listing:: extension/dummy_collectives/pyproject.toml
   :part: metadata

The Python part of the package is one file, which loads the compiled module:

.. listing:: extension/dummy_collectives/dummy_collectives/__init__.py
   :part: package

It imports ``torch`` first, because the compiled module depends on PyTorch's libraries. The
compiled module is for one minor release of PyTorch, and its name contains that release. With
any other one, the import of the package raises an ``ImportError`` that says so.

A patch of PyTorch, such as 2.14.1, needs no new build. PyTorch does not promise that, so we
compared: apart from the version, all headers of 2.14.0 and 2.14.1 are equal, and so are those of
2.12.0 and 2.12.1. Between 2.12.1 and 2.14.0, more than a thousand files differ.
"""

# %%
# Why the flags matter
# --------------------
#
# The compiler needs nearly all of its time for ATen's headers, whatever the size of your own
# file. We measured once, with GCC 12. With setuptools' default flags, ``-O3 -g``, and
# with ``torch/python.h``, the compilation took about 60 seconds. With the flags above it takes
# about 25. Three changes make the difference, the largest first:
#
# * ``-g0`` saves about 20 seconds. Debug information for all of ATen is large and slow to
#   write. Drop ``-g0`` when you need a debugger.
# * ``-O1`` saves about 10 seconds. Our functions do nearly nothing, so more optimization gains
#   nothing. The tensor operations that they call are compiled already.
# * ``torch/csrc/utils/pybind.h`` instead of ``torch/python.h`` saves the rest. It is all
#   that the binding needs.
#
# With ``-isystem`` you can use ``-Wall -Wextra``: the compiler warns about your code and
# not about PyTorch's headers.
#
# The remaining time goes into headers that never change. A compiler can read them
# precompiled, which takes 500 MB of disk.

# %%
# Build and install
# -----------------
#
# We copy the sources into a scratch folder and create an empty virtual
# environment next to them. One line in a ``.pth`` file makes PyTorch and the build tools
# of the environment that runs this page available there. On your own machine, activate your
# own environment instead.

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

# sphinx_gallery_start_ignore
# time limit: 180
import os

os.environ.pop("PYTHONPATH", None)  # The build's own copy must not be found.
# sphinx_gallery_end_ignore
temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)


def run(command):
    """Run a command, and show it with its output."""
    print(f"$ {command}")
    pipe, stdout = subprocess.PIPE, subprocess.STDOUT
    done = subprocess.run(
        command, shell=True, cwd=folder, text=True, stdout=pipe, stderr=stdout
    )
    assert done.returncode == 0, done.stdout
    print(done.stdout, end="")
    return done.stdout


# sphinx_gallery_start_ignore
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ["PIP_NO_INDEX"] = os.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
# sphinx_gallery_end_ignore
run("python -m venv --without-pip scratch")
[site_packages] = folder.glob("scratch/lib/python*/site-packages")
(site_packages / "borrowed.pth").write_text(str(Path(torch.__file__).parents[1]))

# %%
# One command installs the package. ``--no-build-isolation`` is important: without it, pip
# downloads another PyTorch for the build, and compiles against that one instead of yours.

# sphinx_gallery_start_ignore
shutil.copytree(
    "../../extension/dummy_collectives",
    folder / "dummy_collectives",
    ignore=shutil.ignore_patterns("build", "*.egg-info"),
)
# sphinx_gallery_end_ignore
run(
    "pip --python scratch/bin/python install --quiet "
    "--no-build-isolation ./dummy_collectives"
)

# %%
# While you edit the Python part of the package, add ``--editable`` to this command. The
# installed package is then the folder with your sources.

# %%
# See that it works
# -----------------
#
# The import registers the backend silently:

output = run(
    "scratch/bin/python -W error -c 'import dummy_collectives, torch; "
    'print(torch.distributed.Backend.backend_capability["dummy"])\''
)

# %%
# The package also has the entry point, which PyTorch looks for since 2.14:

output = run(
    "scratch/bin/python -c 'from importlib.metadata import entry_points; "
    'print(*entry_points(group="torch.distributed.backends", name="dummy"))\''
)

# %%
# With another minor release of PyTorch, the import fails. An environment can have only one
# PyTorch, so this program changes the version string instead:

from unittest import mock

sys.path.insert(0, str(site_packages))
with mock.patch.object(torch, "__version__", "2.12.1"):
    try:
        import dummy_collectives
    except ImportError as error:
        print(error)

# %%
# What may go wrong
# -----------------
#
# * ``TypeError: incompatible function arguments`` that mentions ``c10d::Store``, or
#   ``undefined symbol``: the extension was compiled for another PyTorch, or with another
#   pybind11. Build again with the PyTorch that you run and with the pybind11 in it.
# * A header is missing, or a method no longer overrides anything: c10d's headers
#   change between minor releases. Build once for each.
# * ``ImportError: libc10.so: cannot open shared object file``: a program imported a
#   compiled module before ``torch``. The package above imports ``torch`` itself.
#
# The build does not run these three cases.
#
# While you change a backend, a shorter way is :doc:`step-3-load-just-in-time`.

# sphinx_gallery_start_ignore
temporary.cleanup()
# sphinx_gallery_end_ignore
