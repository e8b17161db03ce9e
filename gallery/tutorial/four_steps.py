"""
A backend in four steps
=======================

In 15 minutes you see a whole backend for ``torch.distributed``, build it, and run it on two ranks. There are
four steps: subclass two C++ classes of PyTorch, expose the backend to Python, build a package, and use it.
The backend is called *dummy*. So that nothing hides PyTorch's interface, it moves no data: its all-reduce and
all-gather set each output tensor to zero.

A *rank* is one of the processes that train together, and a *collective* is an operation in which all ranks
take part. In an all-reduce they add up their tensors, for example, and in an all-gather each rank receives
the tensors of all. :doc:`basics` explains what training needs these for, and when PyTorch calls a backend.

Run it first
------------

You need Linux, Python 3.11 or newer with its headers (on Debian, ``python3-dev``), a C++20 compiler such as
GCC 12, and an active virtual environment with ``pip`` and PyTorch 2.13 or newer.
:doc:`Download four-steps.zip <four-steps.zip>`, which has the files of this page and the licence. Unpack it,
and type this command in the folder ``four-steps``:

.. code-block:: sh

    pip install --quiet --no-build-isolation ./dummy-collectives &&
    torchrun --standalone --nproc-per-node=2 first_program.py

The build of this site types the command, too. Because the ranks print when they like, it sorts the lines:
"""

# sphinx_gallery_start_ignore
# time limit: 300
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

os.environ.pop("PYTHONPATH", None)  # The build's own copy must not be found.
os.environ.pop("PYTHONUNBUFFERED", None)  # Each rank prints whole lines.
os.environ["PIP_NO_INDEX"] = os.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
temporary = tempfile.TemporaryDirectory()
scratch, folder = Path(temporary.name, "scratch"), Path(temporary.name, "four-steps")
shutil.copytree(
    "../../extension/dummy_collectives",
    folder / "dummy-collectives",
    ignore=shutil.ignore_patterns("build", "*.egg-info"),
)
shutil.copy("four_steps/first_program.py", folder)

# An environment of its own, which borrows PyTorch and the tools of the current one.
subprocess.run([sys.executable, "-m", "venv", "--without-pip", scratch], check=True)
[site_packages] = scratch.glob("lib/python*/site-packages")
(site_packages / "borrowed.pth").write_text(str(Path(torch.__file__).parents[1]))
for tool, module in {"pip": "pip", "torchrun": "torch.distributed.run"}.items():
    path = scratch / "bin" / tool
    path.write_text(f'#!/bin/sh\nexec "{scratch}/bin/python" -m {module} "$@"\n')
    path.chmod(0o755)
os.environ["PATH"] = os.pathsep.join([str(scratch / "bin"), os.environ["PATH"]])


def run(command):
    """Run a command in the folder; return the lines that it prints."""
    pipe, stdout = subprocess.PIPE, subprocess.STDOUT
    done = subprocess.run(
        command, shell=True, cwd=folder, text=True, stdout=pipe, stderr=stdout
    )
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    return [x for x in lines if "No backend of type 0 found" not in x]  # PyTorch 2.13 says it.


def rank(line):
    return re.match(r"rank (\d): ", line)[1]


# What the page tells readers to type.
[command] = re.findall(r"code-block:: sh\n\n((?:    .+\n)+)", Path("four_steps.py").read_text())
# sphinx_gallery_end_ignore
print(*sorted(run(command), key=rank), sep="\n")
# sphinx_gallery_start_ignore
temporary.cleanup()
# sphinx_gallery_end_ignore

# %%
# ``pip`` compiles the C++ and installs the package, which takes about a minute. ``torchrun`` then starts the
# program once for each rank. You can ignore a warning about ``OMP_NUM_THREADS``, and one of PyTorch 2.13 about
# a ``backend of type 0``.
#
# While it compiles, read how it is made. These are the files, in the order of the steps. All but the program
# are in the folder ``dummy-collectives``. Beside the program, Python would import the sources of the package,
# which have no compiled module, and not the installed package:
#
# .. list-table::
#    :header-rows: 1
#
#    * - Step
#      - File
#      - Contents
#    * - 1
#      - ``src/dummy.cpp``
#      - the backend, and the handle that its collectives return
#    * - 2
#      - ``src/dummy.cpp``, to its end
#      - the function that creates the backend, and its registration in Python
#    * - 3
#      - ``setup.py``, ``pyproject.toml``, ``dummy_collectives/__init__.py``
#      - the package
#    * - 4
#      - ``first_program.py``
#      - a program that uses it
#
# Step 1: subclass Backend and Work
# ---------------------------------
#
# The C++ uses these names of PyTorch:
#
# .. list-table::
#    :header-rows: 1
#
#    * - Name
#      - Meaning
#    * - ``c10d::Backend``
#      - the base class of backends, with a virtual method for each collective
#    * - ``c10d::Work``
#      - the handle of one collective, with which a program waits for it
#    * - ``c10::ivalue::Future``
#      - a future: a value that arrives later, here a list of tensors
#    * - ``c10::intrusive_ptr``
#      - a pointer that counts its references
#    * - ``TORCH_CHECK``
#      - throws if its condition is false; in Python, that is a ``RuntimeError``
#
# ``Backend.hpp`` declares what step 1 needs. The two headers with ``pybind`` in their names are for step 2:
#
# .. listing:: extension/dummy_collectives/src/dummy.cpp
#    :part: includes
#
# A future must be told on which accelerators its tensors are. For CPU tensors, the list is empty:
#
# .. listing:: extension/dummy_collectives/src/dummy.cpp
#    :part: devices
#    :no-caption:
#
# Each collective returns a ``Work``. The dummy has finished before it returns, so its future is complete
# from the start, and ``wait`` ignores the timeout. A backend that communicates completes the future when
# the data has arrived:
#
# .. listing:: extension/dummy_collectives/src/dummy.cpp
#    :part: work
#    :no-caption:
#
# The backend itself has a name, which the errors of missing collectives contain. Write ``override`` after
# each method, so that the compiler reports a signature that another release of PyTorch has changed. Without
# ``override``, the method compiles, and PyTorch never calls it.
#
# .. listing:: extension/dummy_collectives/src/dummy.cpp
#    :part: backend
#    :no-caption:
#
# All-reduce writes into the tensor that it receives. All-gather receives an input and a list with one
# output for each rank. Both arguments have an extra outer vector, which always has one element. Check what
# your code relies on, because an error that names the backend is easier to understand than a crash:
#
# .. listing:: extension/dummy_collectives/src/dummy.cpp
#    :part: collectives
#    :no-caption:
#    :dedent: 0
#
# ``destroy_process_group`` calls ``shutdown``, and a program that must not wait for a dead rank calls
# ``abort``. Because the program may still hold the group, ``set_to_zero`` first tests ``closed_``. Then it
# does what your backend would leave to its library. ``NoGradGuard`` hides that from autograd, because an
# output may be a parameter, which requires a gradient:
#
# .. listing:: extension/dummy_collectives/src/dummy.cpp
#    :part: end
#    :no-caption:
#    :dedent: 0
#
# More on step 1: :doc:`step-1-subclass-backend`, and :doc:`what-a-backend-needs`, which lists the
# collectives that each feature of PyTorch calls.
#
# Step 2: expose the backend to Python
# ------------------------------------
#
# PyTorch creates the backend with a function, which it calls in each rank of a group. With the *store*, a
# table of keys and values that all ranks can reach, a real backend tells the other ranks its address. The
# timeout says how long a collective may take. The dummy needs neither:
#
# .. listing:: extension/dummy_collectives/src/dummy.cpp
#    :part: create
#    :no-caption:
#
# When Python imports the module, ``register_backend`` gives this function the name ``dummy``. ``devices`` are
# those whose tensors the backend accepts. A real backend waits in the function for the other ranks, so
# ``gil_scoped_release`` lets other Python threads run in the meantime:
#
# .. listing:: extension/dummy_collectives/src/dummy.cpp
#    :part: register
#    :no-caption:
#
# More on step 2: :doc:`step-2-expose-to-python`.
#
# Step 3: build the package
# -------------------------
#
# PyTorch's ``CppExtension`` knows where its headers and libraries are, so ``setup.py`` names only the source
# and the flags. The C++ interface of c10d can change with each minor release, and a module that was compiled
# for another one can crash. So the package requires the minor release that compiles it, and the name of the
# module contains it. One source file gains nothing from ``ninja``, which you would have to install:
#
# .. listing:: extension/dummy_collectives/setup.py
#    :part: setup
#
# ``__init__.py`` looks for the module of this name, and otherwise says what to do:
#
# .. listing:: extension/dummy_collectives/dummy_collectives/__init__.py
#    :part: package
#
# ``pyproject.toml`` describes the package for ``pip``:
#
# .. listing:: extension/dummy_collectives/pyproject.toml
#    :part: metadata
#
# Its last lines are an *entry point*, with which PyTorch imports the package when a program names the
# backend:
#
# .. listing:: extension/dummy_collectives/pyproject.toml
#    :part: entry-point
#    :no-caption:
#
# Install with ``--no-build-isolation``, as the command above does. Without it, ``pip`` downloads another
# PyTorch for the build, and compiles against that one.
#
# More on step 3: :doc:`step-3-build-and-install`, and :doc:`step-3-found-by-name`.
#
# Step 4: use it
# --------------
#
# Except for the import, only the name differs from a program for gloo or NCCL. PyTorch 2.13 needs the import,
# because it ignores entry points. ``torchrun`` tells ``init_process_group`` the rank, and where the others are:
#
# .. listing:: gallery/tutorial/four_steps/first_program.py
#    :part: use
#
# In the output above, both ranks have zeros, where a real all-reduce returns ``[2.0, 2.0]``. The dummy has no
# broadcast, so that call raises an error, which names the backend and the collective:
#
# .. listing:: gallery/tutorial/four_steps/first_program.py
#    :part: missing
#    :no-caption:
#
# A group can have a backend for each type of device. In the next group, gloo handles CPU tensors, and the
# dummy handles those of a GPU:
#
# .. listing:: gallery/tutorial/four_steps/first_program.py
#    :part: devices
#    :no-caption:
#
# The last line of each rank shows that gloo ran: it adds up the ones of both ranks. On a computer with a
# GPU, the program prints one more line, with the zeros of the dummy.
#
# More on step 4: :doc:`step-4-several-ranks`, :doc:`step-4-unimplemented-collective` and
# :doc:`step-4-dispatch-by-device`.
#
# .. admonition:: Where next
#
#    - You have a library that works in streams: :doc:`/accelerators/index`.
#    - You have a library or a transport for CPU memory: :doc:`/right/index`, then :doc:`/library/index`.
#    - You have an algorithm: :doc:`step-4-backend-in-python`, then :doc:`/communicate/index`.
#    - You have a training program: :doc:`/overview/map`, and if it hangs, :doc:`/communicate/debug`.
#
# Not run here: the program on a computer with a GPU.
