import os
from pathlib import Path

import c10d_frame
import torch
from setuptools import setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, include_paths

# The folder with the device.hpp and the library.hpp of a device: "sim", "cuda", or your own.
device = os.environ.get("BUILD_FOR", "sim")

# An absolute path, because ninja runs in another folder.
here = Path(__file__).resolve().parent
if not (here / device / "device.hpp").is_file():
    raise SystemExit(f"BUILD_FOR={device}: the folder {device} has no device.hpp")
headers, libraries = include_paths(), []
if device == "cuda":
    # NCCL comes with the CUDA build of PyTorch, and the CUDA toolkit may be missing.
    nccl = Path(torch.__file__).resolve().parents[1] / "nvidia" / "nccl"
    toolkit = Path(CUDA_HOME or "/usr/local/cuda", "include")
    headers += map(str, [nccl / "include", toolkit, here / "cuda" / "without_toolkit"])
    libraries = [str(nccl / "lib" / "libnccl.so.2")]

# Without debug information, it compiles faster.
fast_to_compile = ["-O2", "-g0", "-fvisibility=hidden"]

# All warnings for our own code, and none for PyTorch's headers, which -isystem marks.
strict = ["-Wall", "-Wextra", *(f"-isystem{path}" for path in headers)]

# A build works with one minor release of PyTorch. With another one it can crash or call the
# wrong methods. So the package requires this release, and the module's name contains it:
# __init__.py looks for that name.
major, minor, *_ = torch.__version__.split(".")

setup(
    install_requires=[f"torch=={major}.{minor}.*"],
    ext_modules=[
        CppExtension(
            name=f"acme_collectives._for_torch_{major}_{minor}",
            # All else is headers, so that the compiler reads those of PyTorch once.
            sources=["src/registration.cpp"],
            # Last those for "frame/..." and "streams/...", which pip installs and upgrades.
            include_dirs=[str(here), str(here / device), c10d_frame.get_include()],
            # Your library is linked here: library_dirs=["/opt/acme/lib"], libraries=["acme"],
            # extra_link_args=["-Wl,-rpath,/opt/acme/lib"],
            extra_objects=libraries,
            extra_compile_args={"cxx": fast_to_compile + strict},
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
)
