# [setup]
from pathlib import Path

import torch
from setuptools import setup
from torch.utils.cpp_extension import (
    BuildExtension,
    CppExtension,
    CUDAExtension,
    include_paths,
)

# With CUDA present the extension links against its libraries too.
Extension = CUDAExtension if torch.cuda.is_available() else CppExtension

# Little optimization and no debug information: a file that includes ATen then
# compiles in half the time that setuptools' default, -O3 -g, takes.
fast_to_compile = ["-O1", "-g0", "-fvisibility=hidden"]

# All warnings for our code, none for PyTorch's: -isystem marks its headers.
strict = ["-Wall", "-Wextra", *(f"-isystem{path}" for path in include_paths())]

# A build works with the release of PyTorch that it was made for, and crashes or worse
# with others. The module's name says which, and __init__.py looks for that name.
release = torch.__version__.partition("+")[0].replace(".", "_")

setup(
    ext_modules=[
        Extension(
            name=f"dummy_collectives._for_torch_{release}",
            sources=["src/dummy.cpp"],
            # Absolute, because ninja runs in a folder of its own.
            include_dirs=[str(Path(__file__).resolve().parent / "include")],
            # A real backend names its communication library here, for example
            # library_dirs=["/opt/acme/lib"], libraries=["acme_collectives"],
            extra_compile_args={"cxx": fast_to_compile + strict},
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
)
# [/setup]
