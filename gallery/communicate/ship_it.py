"""
Test it and ship it
===================

After this page you can let sanitizers search a backend for faults, and build a package of it
for each minor release of PyTorch.

:doc:`test-your-backend` tests what a backend promises. A *sanitizer* looks for faults that
such a test may miss. The compiler adds checks to your code, and a library, the *runtime*, reports
a fault where it happens.

.. diagram:: communicate/ship_it/diagram

Three sanitizers
----------------

.. list-table::
   :header-rows: 1

   * - flag of the compiler
     - what it finds
   * - ``-fsanitize=address``
     - accesses outside of allocated memory, or after it was freed
   * - ``-fsanitize=undefined``
     - what C++ does not define, such as an overflow of ``int``
   * - ``-fsanitize=thread``
     - accesses of two threads that nothing orders: *data races*

The first two can be combined. The first and the last exclude each other. The tests of this site
therefore compile ``shm`` twice more. They set ``CXX`` to a script that appends the flags, and run
most samples and tests of ``shm`` with both results. Here we compile short files in the same way:

.. admonition:: The code
   :collapsible: closed

   .. listing:: gallery/communicate/ship_it/sanitized.py
      :part: compile

Load the runtime first
----------------------

Python loads an extension, and was itself not compiled for a sanitizer. The next library is
loaded in the same way. Each of its functions does what a backend may do with the slots of
:doc:`lay-out-the-memory`, and none tests its argument:

.. listing:: gallery/communicate/ship_it/slots.cpp
   :part: slots

A slot has 1024 numbers, and the shared memory contains two slots. The program compiles the
library, and calls it in new Python processes:

.. admonition:: The code
   :collapsible: closed

   .. listing:: gallery/communicate/ship_it/unsanitized_process.py
      :part: calls

``run`` prints a title and what the process printed. Of a report it prints the kind of the fault,
and the code of the line instead of its number:
"""

from launcher import run_program

output = run_program("ship_it/unsanitized_process.py")

# sphinx_gallery_start_ignore
# output may differ in: _for_torch_\S+|cp3\d+-cp3\d+\S*-linux_\w+|torch==\S+
# sphinx_gallery_end_ignore

# %%
# The first call ended the process. AddressSanitizer replaces ``malloc``, so its runtime must be
# loaded before all other libraries. ``LD_PRELOAD`` does that. An extension that throws exceptions
# needs ``libstdc++.so`` there, too, as in the tests of ``shm``: at its start, the runtime looks for
# the function that throws. Python never frees all of its memory, so ``detect_leaks=0`` turns
# the search for leaks off.
#
# The third call shows a report. The fourth read a number of the second slot, without a
# report. AddressSanitizer knows the bounds of allocations, but not those of the slots in a
# mapping. Such a fault shows only in the values of tensors, which the conformance suite compares.
# The last call reported that the product does not fit, and continued with a wrong offset. The tests
# of ``shm`` add ``-fno-sanitize-recover=undefined``, which ends the process there.
#
# A mistake: a counter that orders nothing
# ----------------------------------------
#
# A rank writes to a slot and then posts a counter, as :doc:`step-by-step` explains. This program
# does the same with two threads. ``kOrder`` is the memory order of the counter:
#
# .. listing:: gallery/communicate/ship_it/publish.cpp
#    :part: publish
#
# ``relaxed`` makes the counter atomic, and orders nothing else. The reader may see the counter
# and still the old number. ``release`` and ``acquire`` are the cure. One compilation contains
# both:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/ship_it/data_race.py
#       :part: race

output = run_program("ship_it/data_race.py")

# %%
# Both variants print 42, so a test of the value passes. ThreadSanitizer does not wait for
# the wrong value. It finds two accesses to ``slot``, one of them a write, and nothing that orders
# them. This program needs no ``LD_PRELOAD``, because the whole program was compiled for the
# sanitizer. PyTorch was not: its atomic operations are invisible, so the tests of ``shm`` set
# ``ignore_noninstrumented_modules=1`` in ``TSAN_OPTIONS``.
#
# One build for each minor release
# --------------------------------
#
# ``pip wheel --no-build-isolation --no-deps`` builds a *wheel*, the file that pip installs.
# The build of this site calls the same function of setuptools, and unpacks the wheel.
# :doc:`/tutorial/step-3-build-and-install` explains the sources. This is what was installed:

from importlib.metadata import distribution, entry_points

package = distribution("shm-collectives")
[compiled] = [file for file in package.files if file.suffix == ".so"]
[line] = [x for x in package.read_text("WHEEL").splitlines() if x.startswith("Tag: ")]
tag = line.removeprefix("Tag: ")

print("compiled module:", compiled.name)
print("tag of the wheel:", tag)
print("requires:", *package.requires)
[entry] = entry_points(group="torch.distributed.backends", name="shm")
print("entry point:", entry.name, "=", entry.value)

# sphinx_gallery_start_ignore
import torch

major, minor, *_ = torch.__version__.split(".")
assert compiled.name.startswith(f"_for_torch_{major}_{minor}."), compiled
assert package.requires == [f"torch=={major}.{minor}.*"] and "linux" in tag
# sphinx_gallery_end_ignore

# %%
# The requirement lets pip install the minor release of PyTorch that the wheel was built for, with
# any patch. The name of the wheel consists of the package, its version and the tag, so
# two wheels for two releases of PyTorch have the same name unless each has a version of its own. An
# index of your own can have versions such as ``1.0.0+torch2.15``. PyPI accepts none with a ``+``.
#
# A wheel for PyPI
# ----------------
#
# The tag names Python and the platform. PyPI does not accept ``linux`` as the platform, but it
# accepts ``manylinux``, for wheels that contain all libraries except
# `a list of system libraries <https://peps.python.org/pep-0513/>`__. ``auditwheel repair`` copies
# the libraries into the wheel and changes the tag. PyTorch's libraries must stay out, because a
# process has to use those that ``import torch`` has loaded. The wheel that the build has unpacked
# is packed again here, and then repaired:

import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
with ZipFile(folder / f"shm_collectives-1.0.0-{tag}.whl", "w") as wheel:
    for file in package.files:
        wheel.write(file.locate(), file)

command = "auditwheel repair --exclude 'libtorch*' --exclude 'libc10*' -w repaired *.whl"
subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True)

[path] = folder.glob("repaired/*.whl")
with ZipFile(path) as wheel:
    wheel.extractall(folder)
print("platform:", path.stem.split("-")[-1].split("_")[0])
print("libraries in the wheel:", *[x.name for x in folder.rglob("*.so*")])
print("names libc10.so:", b"libc10.so\0" in compiled.read_binary())

sys.path.insert(0, str(folder))
import shm_collectives

print("imported from the wheel:", folder in Path(shm_collectives.__file__).parents)

# sphinx_gallery_start_ignore
temporary.cleanup()
# sphinx_gallery_end_ignore

# %%
# The rest of the tag is the oldest glibc that the wheel works with, so build it in one of the
# images of `manylinux <https://github.com/pypa/manylinux>`__, which have an old one. The wheels
# of PyTorch 2.15 are for ``manylinux_2_28``. If your communication library is not part of the
# system, ``auditwheel`` copies it into the wheel; add an ``--exclude`` if users install it.
#
# PyTorch's *stable ABI*, in the headers of ``torch/csrc/stable``, lets one build serve several
# releases. It has no function of c10d, and ``Backend.hpp`` ends the compilation with an error if
# ``TORCH_TARGET_VERSION`` asks for it.
#
# :doc:`/tutorial/step-3-found-by-name` shows what PyTorch does with the entry point from 2.14 on.
#
# Exercise
# --------
#
# The ranks of ``shm`` are processes. Let a process instead of a thread publish the number, with the
# mistake, in memory that both share. Predict what ThreadSanitizer reports.
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    It reports nothing. The runtime in each process sees only the accesses of this process.
#
#    .. listing:: gallery/communicate/ship_it/publish_to_process.cpp
#       :part: solution
#
# The solution is compiled for ThreadSanitizer and run:

output = run_program("ship_it/race_of_processes.py")

# %%
# With ThreadSanitizer, the tests of ``shm`` therefore check the threads of each rank, and not the
# memory order between ranks. Test the memory order of a protocol with threads, as this page
# does, and the order of its steps with a model, as :doc:`step-by-step` does.
