"""
Step 3: Build and install the extension
=======================================

The C++ is written; now it becomes a Python package. This page builds and
installs it into a scratch environment, and every command you see below was run
when the page was made.

.. diagram:: backend/build

The build script
----------------

``setup.py`` names the sources and the flags, and leaves the rest to
:mod:`torch.utils.cpp_extension`: it knows where PyTorch's headers and libraries
are, which C++ standard they need, and how to hand the work to ninja.
``CUDAExtension`` takes the place of ``CppExtension`` when PyTorch can see a GPU.

.. not-executed::
   :partly:

   The machine that builds this site has no GPU: ``CUDAExtension`` was imported, and not
   used.

   .. literalinclude:: /../extension/dummy_collectives/setup.py
      :language: python
      :caption: extension/dummy_collectives/setup.py
      :start-after: # [setup]
      :end-before: # [/setup]

A backend for real hardware links against its communication library here,
through ``library_dirs`` and ``libraries``.
`torch-ucc <https://github.com/facebookresearch/torch_ucc>`__ is an early example.
PyTorch's own sources now contain a backend for UCC.

``pyproject.toml`` says what the build needs and what the package is:

.. literalinclude:: /../extension/dummy_collectives/pyproject.toml
   :language: toml
   :caption: extension/dummy_collectives/pyproject.toml
   :start-after: # [metadata]
   :end-before: # [/metadata]

The package itself is one file, which loads the compiled module:

.. literalinclude:: /../extension/dummy_collectives/dummy_collectives/__init__.py
   :language: python
   :caption: extension/dummy_collectives/dummy_collectives/__init__.py
   :start-after: # [package]
   :end-before: # [/package]

``import torch`` comes first there, because the compiled module depends on PyTorch's
libraries. The compiled module is for one release of PyTorch, which its name contains. With
any other release, importing the package raises an ``ImportError`` that says so.
"""

# %%
# Why the flags matter
# --------------------
#
# Nearly all of the compile time goes into reading ATen's headers, whatever the
# size of your own file. With setuptools' default flags, ``-O3 -g``, and
# ``torch/python.h`` included, this extension took GCC 12 about 60 seconds on the
# machine where we measured; as shown above, it takes about 25. Three things make
# the difference, the largest first:
#
# * ``-g0`` saves about 20 seconds: debug information for all of ATen is large and
#   slow to write. Take it out, and put it back on the day you need a debugger.
# * ``-O1`` saves about 10: our functions do next to nothing, so there is nothing to
#   gain from optimizing them harder. The tensor operations that they call are
#   compiled already.
# * ``torch/csrc/utils/pybind.h`` instead of ``torch/python.h`` saves the rest: it is
#   all that the binding needs.
#
# ``-isystem`` costs nothing and lets you keep ``-Wall -Wextra`` on: the compiler
# warns about your code, and stays silent about PyTorch's.
#
# What is left goes into headers that never change. A compiler can read them
# precompiled: they then take 500 MB of disk, and a compilation takes about 10 seconds
# instead of 25. The build of this site does so, in ``tools/compile/headers.py``; the commands
# on this page do without.

# %%
# Build and install
# -----------------
#
# We copy the sources into a scratch folder and create an empty virtual
# environment next to them. One line in a ``.pth`` file lets it borrow PyTorch and
# the build tools from the environment that runs this page; at home you would
# simply activate your own environment.

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
    """Show a command, run it, and show what it prints."""
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
# The installation itself is one command. ``--no-build-isolation`` is the part to
# remember: without it pip compiles against a PyTorch that it downloads for the
# purpose, instead of the one that you are going to use.

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
# ``python setup.py develop``, which you may know from older texts, is deprecated. In
# setuptools 84 it prints a warning and calls ``pip install -e .``, without
# ``--no-build-isolation``. For an editable installation add ``--editable`` to the
# command above instead.

# %%
# See that it works
# -----------------
#
# The import registers the backend, silently.

output = run(
    "scratch/bin/python -W error -c 'import dummy_collectives, torch; "
    'print(torch.distributed.Backend.backend_capability["dummy"])\''
)
# sphinx_gallery_start_ignore
assert output == "['cpu', 'cuda']\n"
# sphinx_gallery_end_ignore

# %%
# The package also has the entry point, which PyTorch looks for since 2.14:

output = run(
    "scratch/bin/python -c 'from importlib.metadata import entry_points; "
    'print(*entry_points(group="torch.distributed.backends", name="dummy"))\''
)
# sphinx_gallery_start_ignore
assert "value='dummy_collectives:register'" in output
# sphinx_gallery_end_ignore

# %%
# With another release of PyTorch the import fails. An environment can have only one
# PyTorch, so this program changes the version string instead:

from unittest import mock

sys.path.insert(0, str(site_packages))
with mock.patch.object(torch, "__version__", "2.12.1"):
    try:
        import dummy_collectives
    except ImportError as error:
        print(error)

# sphinx_gallery_start_ignore
        assert "was not built for PyTorch 2.12.1" in str(error)
    else:
        raise AssertionError(f"{dummy_collectives} was imported")
# sphinx_gallery_end_ignore

# %%
# What may go wrong
# -----------------
#
# * ``TypeError: incompatible function arguments`` that mentions ``c10d::Store``, or
#   ``undefined symbol``: the extension was compiled for another PyTorch, or with a
#   pybind11 of its own. Build again, against the PyTorch that you run and with the
#   pybind11 that comes with it.
# * A header is missing, or a method no longer overrides anything: c10d's headers
#   change between releases. Build once for each release of PyTorch.
# * ``ImportError: libc10.so: cannot open shared object file``: a compiled module was
#   imported before ``torch``. The package above imports ``torch`` itself.
#
# The backend is installed. While you are still changing it, there is a shorter
# way: the next page compiles it while Python runs.

# sphinx_gallery_start_ignore
installed = run("scratch/bin/python -c 'import dummy_collectives as d; print(d.__file__)'")
assert Path(installed.strip()).is_relative_to(folder.resolve())
temporary.cleanup()
# sphinx_gallery_end_ignore
