"""
Step 3, the short way: Compile at run time
==========================================

After this page you can compile and load a backend from a Python program.

While you change a backend often, you do not need to install it each time.
:func:`torch.utils.cpp_extension.load` compiles the sources and imports the result in one
call.

.. diagram:: tutorial/step_3_load_just_in_time/diagram
"""

import tempfile

import torch
import torch.distributed as dist
from torch.utils.cpp_extension import load

# sphinx_gallery_start_ignore
# time limit: 180
import os
import sys
from pathlib import Path

os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
# sphinx_gallery_end_ignore
sources = "../../extension/dummy_collectives"
build = tempfile.TemporaryDirectory()

module = load(
    name="dummy_just_in_time",
    sources=[f"{sources}/src/dummy.cpp"],
    extra_include_paths=[f"{sources}/include"],
    extra_cflags=["-O1", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra"],
    build_directory=build.name,
)
print(module.__doc__)

# %%
# The import registers the backend, as with the installed package:

dist.init_process_group("dummy", store=dist.HashStore(), rank=0, world_size=1)
tensor = torch.ones(3)
dist.all_reduce(tensor)
print(tensor)
dist.destroy_process_group()

# %%
# Know these facts about ``load``:
#
# * It compiles with ninja and keeps the result. A second call with the same sources and
#   flags compiles nothing. The result is in a cache in your home folder unless you name
#   a ``build_directory``, as we do here.
# * With a build of PyTorch for CUDA, on a computer with a CUDA toolkit and without a GPU,
#   importing ``torch.utils.cpp_extension`` logs ``No CUDA runtime is found``. The build of
#   this page hides the toolkit.
# * You choose the flags, as in ``setup.py``. Without flags, it passes no ``-O``.
# * Several ranks that compile at the same time wait for a lock in the build folder. Compile
#   once before the ranks start instead.
#
# A second registration does no harm. The function sees that the name is registered and
# changes nothing:

before = dist.Backend._plugins["DUMMY"]
module.register()
assert dist.Backend._plugins["DUMMY"] is before
print("registered once")

# sphinx_gallery_start_ignore
build.cleanup()
# sphinx_gallery_end_ignore
