"""
A backend in four steps
=======================

In 15 minutes you see a whole backend for ``torch.distributed``, build it, and run it on two ranks, the
processes of a training program. The backend is called *dummy*. So that nothing hides PyTorch's interface, it
moves no data: its collectives, all-reduce and all-gather, set each output to zero. :doc:`basics` explains
ranks and collectives, and when PyTorch calls a backend.

Run it first
------------

You need Linux, Python 3.11 or newer with its headers (``python3-dev`` on Debian), a C++20 compiler such as
GCC 12, and an active virtual environment with PyTorch 2.13 or newer.
:doc:`Download four-steps.zip <four-steps.zip>`, which has all files of this page, unpack it, and type this
command in the folder ``four-steps``:

.. code-block:: sh

    pip install --quiet --no-build-isolation ./dummy-collectives &&
    torchrun --standalone --nproc-per-node=2 first_program.py

The order of the lines varies, so the build of this site sorts them by rank:
"""

# sphinx_gallery_start_ignore
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
    # PyTorch 2.13 warns of type 0. The Python that torchrun starts writes the end of a line by
    # itself, so the line of another rank can come before it.
    output = re.sub(".*No backend of type 0 found.*\n", "", done.stdout)
    lines = re.findall(r"rank \d: (?:(?!rank \d: ).)+", output)
    assert "".join(lines) == output.replace("\n", ""), done.stdout
    return lines


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
# ``pip`` compiles the C++ and installs the package, which takes about a minute. Then ``torchrun`` starts the
# program once for each rank. You can ignore its warning about ``OMP_NUM_THREADS``. Step 4 explains the lines that the
# ranks print.
#
# Without ``--no-build-isolation``, ``pip`` downloads another PyTorch and compiles against that one.
#
# Step 1: subclass Backend and Work
# ---------------------------------
#
# The backend is one C++ file, which uses these names of PyTorch:
#
# .. list-table::
#    :header-rows: 1
#
#    * - Name
#      - Meaning
#    * - ``c10d::Backend``
#      - the base class of backends, with a virtual method for each collective
#    * - ``c10d::Work``
#      - what a collective returns, so that a program can wait for it
#    * - ``c10::ivalue::Future``
#      - a value that arrives later, here a list of tensors
#    * - ``c10::intrusive_ptr``
#      - a pointer that counts references
#    * - ``TORCH_CHECK``
#      - throws if its condition is false; in Python, a ``RuntimeError``
#
# The headers with ``pybind`` in their names are for step 2:
#
# .. listing:: extension/dummy_collectives/src/dummy.cpp
#    :part: includes
#
# The future needs to know on which accelerators its tensors are. For CPU tensors, the list is empty:
#
# .. listing:: extension/dummy_collectives/src/dummy.cpp
#    :part: devices
#    :no-caption:
#
# On the CPU, the dummy has finished before it returns, so its future is complete from the start, and ``wait``
# ignores the timeout. A real backend completes the future when the data has arrived:
#
# .. listing:: extension/dummy_collectives/src/dummy.cpp
#    :part: work
#    :no-caption:
#
# The errors of missing collectives contain the name of the backend. Write ``override`` after each method, so
# that the compiler reports a signature that another release of PyTorch has changed:
#
# .. listing:: extension/dummy_collectives/src/dummy.cpp
#    :part: backend
#    :no-caption:
#
# All-reduce overwrites its tensor. All-gather receives an input, and an output for each rank. Both arguments
# have an extra outer vector with one element. The checks turn a crash into an error:
#
# .. listing:: extension/dummy_collectives/src/dummy.cpp
#    :part: collectives
#    :no-caption:
#    :dedent: 0
#
# Your backend calls its library in place of ``zero_``. ``NoGradGuard`` hides the write from autograd, because an
# output may be a parameter of a model.
#
# ``destroy_process_group`` calls ``shutdown``, but a program may still hold the group. So each collective tests
# ``closed_``. ``abort`` ends the backend after a failure:
#
# .. listing:: extension/dummy_collectives/src/dummy.cpp
#    :part: end
#    :no-caption:
#    :dedent: 0
#
# More on step 1: :doc:`step-1-subclass-backend`, :doc:`what-a-backend-needs`.
#
# Step 2: expose the backend to Python
# ------------------------------------
#
# PyTorch calls this function in each rank of a group. A real backend finds the other ranks through the
# *store*, a table of keys and values, and gives up after the timeout:
#
# .. listing:: extension/dummy_collectives/src/dummy.cpp
#    :part: create
#    :no-caption:
#
# When Python imports the module, ``register_backend`` registers the function under a name, with the
# devices whose tensors the backend accepts. Because a real backend waits in the function for the other ranks,
# ``gil_scoped_release`` lets other Python threads run:
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
# ``CppExtension`` knows PyTorch's headers and libraries. A single source file needs no ``ninja``.
#
# The C++ interface of c10d changes between minor releases. So the package requires the release that it was compiled
# with, and the name of its module contains that release:
#
# .. listing:: extension/dummy_collectives/setup.py
#    :part: setup
#
# ``__init__.py`` loads the module that was compiled for the installed release, and raises an error if there is none:
#
# .. listing:: extension/dummy_collectives/dummy_collectives/__init__.py
#    :part: package
#
# ``pyproject.toml`` describes the package for ``pip``:
#
# .. listing:: extension/dummy_collectives/pyproject.toml
#    :part: metadata
#
# It ends with an *entry point*, by which PyTorch finds the package:
#
# .. listing:: extension/dummy_collectives/pyproject.toml
#    :part: entry-point
#    :no-caption:
#
# More on step 3: :doc:`step-3-build-and-install`, :doc:`step-3-found-by-name`.
#
# Step 4: use it
# --------------
#
# ``torchrun`` tells ``init_process_group`` the rank and the address of the store. PyTorch 2.13 needs the
# import, because it ignores entry points:
#
# .. listing:: gallery/tutorial/four_steps/first_program.py
#    :part: use
#
# Both ranks print zeros; a real all-reduce returns ``[2.0, 2.0]``. The dummy has no broadcast, so the next
# call raises an error that names the backend and the collective:
#
# .. listing:: gallery/tutorial/four_steps/first_program.py
#    :part: missing
#    :no-caption:
#
# A group can have a backend for each type of device. Here gloo handles CPU tensors, and the dummy handles
# those of a GPU:
#
# .. listing:: gallery/tutorial/four_steps/first_program.py
#    :part: devices
#    :no-caption:
#
# The sums in the output come from gloo. With a GPU, each rank also prints the zeros of the dummy.
#
# More on step 4: :doc:`step-4-several-ranks`, :doc:`step-4-unimplemented-collective`,
# :doc:`step-4-dispatch-by-device`.
#
# .. admonition:: Where next
#
#    - A library that works in streams: :doc:`/accelerators/to-hardware`.
#    - A library or a transport for CPU memory: :doc:`/right/smallest-backend`, then :doc:`next-steps`.
#    - An algorithm: :doc:`/right/smallest-backend`, then :doc:`/communicate/index`.
#    - A training program: :doc:`/overview/map`, and if it hangs, :doc:`/communicate/debug`.
#
# Not run here: the program on a computer with a GPU.
