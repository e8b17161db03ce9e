"""
Step 3: Build and install the extension
=======================================

A package with C++ often compiles slowly. Even after it was installed, its import can fail, for example because it
was compiled for another PyTorch.

This page says more about the package than :doc:`four-steps`: which flags make it compile quickly, and what to
check if the installation fails. It ends with a quicker way while you change the code often.

.. diagram:: tutorial/step_3_build_and_install/diagram

The build script
----------------

``setup.py`` has to name little more than your sources and your flags, because
:mod:`torch.utils.cpp_extension` adds the rest: the paths of PyTorch's headers and libraries, and the C++
standard that they need. With one source file, the dummy does not need ninja, which compiles several files
at the same time:

.. listing:: extension/dummy_collectives/setup.py
   :part: setup

``CppExtension`` is enough for tensors of every device, because ATen's operations choose the code for the device. Use
``CUDAExtension``, which needs the CUDA toolkit, only if your sources call CUDA's runtime or contain kernels. Do not
let the build choose between the two by the GPU that it finds, because a wheel must not depend on the computer that
builds it.

A backend for real hardware links its communication library here, with ``library_dirs`` and
``libraries``. So that the extension also finds the library when it is imported, it needs a run path, which
:doc:`/library/several-hosts` explains.

``pyproject.toml`` describes the package and what its build needs. It leaves the requirement on PyTorch to
``setup.py``, which knows with which release it compiles. The Python part of the package is one file, which loads
the compiled module. It imports ``torch`` first, because the compiled module depends on PyTorch's libraries.

.. admonition:: The description and the Python part of the package
   :collapsible: closed

   .. listing:: extension/dummy_collectives/pyproject.toml
      :part: metadata

   .. listing:: extension/dummy_collectives/dummy_collectives/__init__.py
      :part: package
"""

# %%
# Flags and compile time
# ----------------------
#
# Compiling is slow because of ATen's headers, which take nearly all of the compiler's time, whatever the
# size of your own file. With setuptools' default flags, ``-O3 -g``, and with ``torch/python.h``, one
# compilation with GCC 12 took about 60 seconds. With the flags above and a smaller header it took about 25.
# Three changes make the difference, the largest first:
#
# * ``-g0`` saves about 20 seconds, because debug information for all of ATen is large and slow to write.
#   Drop it when you need a debugger.
# * ``-O1`` saves about 10 seconds. More optimization gains nothing here, because our functions do nearly
#   nothing, and the tensor operations that they call are compiled already.
# * ``torch/csrc/utils/pybind.h`` in place of ``torch/python.h`` saves the rest, and is all that the binding
#   needs.

# %%
# Build and install
# -----------------
#
# On your own machine, activate your environment, and skip the next listing. The listing makes an empty environment
# for this page, in which a ``.pth`` file of one line makes PyTorch and the build tools available. The function
# ``run`` runs each command that follows a ``$``:

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

# sphinx_gallery_start_ignore
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
# One command installs the package. Do not omit ``--no-build-isolation``: without it, pip downloads another
# PyTorch for the build, and compiles against that one instead of yours. While you edit the Python part of the
# package, add ``--editable``, so that the installed package is the folder with your sources.

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
# Checks after the installation
# -----------------------------
#
# The import should register the backend for its two devices, without a warning:

output = run(
    "scratch/bin/python -W error -c 'import dummy_collectives, torch; "
    'print(torch.distributed.Backend.backend_capability["dummy"])\''
)

# %%
# The package should also have the entry point, with which PyTorch finds the backend since 2.14:

output = run(
    "scratch/bin/python -c 'from importlib.metadata import entry_points; "
    'print(*entry_points(group="torch.distributed.backends", name="dummy"))\''
)

# %%
# With another minor release of PyTorch, the import should fail. Because an environment can have only one
# PyTorch, the page changes the version string instead:

from unittest import mock

sys.path.insert(0, str(site_packages))
with mock.patch.object(torch, "__version__", "2.12.1"):
    try:
        import dummy_collectives
    except ImportError as error:
        print(error)

# %%
# The check compares only the minor release, because a patch of PyTorch, such as 2.14.1, needs no new build. PyTorch
# does not promise that, but apart from the version, all headers of 2.14.0 and 2.14.1 are equal.
#
# What may go wrong
# -----------------
#
# If a check fails, find its message in this list:
#
# * ``TypeError: incompatible function arguments`` that mentions ``c10d::Store``, or
#   ``undefined symbol``: the extension was compiled for another PyTorch, or with another
#   pybind11. Build again with the PyTorch that you run and with the pybind11 in it.
# * A header is missing, or a method no longer overrides anything: c10d's headers
#   change between minor releases. Build once for each.
# * The package ``was not built``, although it was just installed: the program lies beside the sources, so
#   Python imports these, which have no compiled module. Move the program, or install with ``--editable``.
# * ``ImportError: libc10.so: cannot open shared object file``: a program imported a
#   compiled module before ``torch``. The package above imports ``torch`` itself.
#
# Compile at run time
# -------------------
#
# While you change the C++ often, you do not need to install it each time.
# :func:`torch.utils.cpp_extension.load` compiles the sources while a program runs, and imports the result
# in the same call:
#
# .. diagram:: tutorial/step_3_build_and_install/at-run-time

import torch.distributed as dist
from torch.utils.cpp_extension import load

sources = "../../extension/dummy_collectives"
build = tempfile.TemporaryDirectory()

module = load(
    name="dummy_just_in_time",
    sources=[f"{sources}/src/dummy.cpp"],
    extra_cflags=["-O1", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra"],
    build_directory=build.name,
)
print(module.__doc__)

# %%
# Because ``load`` keeps the result, a second call with the same sources and flags compiles nothing. The result goes
# into a cache in your home folder unless you name a ``build_directory``. If several ranks compile at the same time,
# they wait for a lock in that folder, so compile once before the ranks start.
#
# The import registers the backend, as with the installed package:

dist.init_process_group("dummy", store=dist.HashStore(), rank=0, world_size=1)
tensor = torch.ones(3)
dist.all_reduce(tensor)
print(tensor)
dist.destroy_process_group()

# sphinx_gallery_start_ignore
# A second registration, as of the installed package in the same program, changes nothing.
before = dist.Backend._plugins["DUMMY"]
module.register()
assert dist.Backend._plugins["DUMMY"] is before
build.cleanup()
temporary.cleanup()
# sphinx_gallery_end_ignore

# %%
# The zeros come from the module that ``load`` has compiled. When the C++ seldom changes any more, install the package
# again, so that no job has to wait for the compiler.
#
# Not run here: the failures of the list, and a build with a CUDA toolkit.
