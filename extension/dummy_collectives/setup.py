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

# With CUDA, the extension also links against the libraries of CUDA.
Extension = CUDAExtension if torch.cuda.is_available() else CppExtension

# Little optimization and no debug information. A file that includes ATen compiles in
# half the time of setuptools' default, -O3 -g.
fast_to_compile = ["-O1", "-g0", "-fvisibility=hidden"]

# All warnings for our own code, and none for PyTorch's headers, which -isystem marks.
strict = ["-Wall", "-Wextra", *(f"-isystem{path}" for path in include_paths())]

# A build works with one release of PyTorch. With another one it can crash or call the wrong
# methods. The module's name contains the release, and __init__.py looks for that name.
release = torch.__version__.partition("+")[0].replace(".", "_")

setup(
    ext_modules=[
        Extension(
            name=f"dummy_collectives._for_torch_{release}",
            sources=["src/dummy.cpp"],
            # An absolute path, because ninja runs in another folder.
            include_dirs=[str(Path(__file__).resolve().parent / "include")],
            # A real backend links its communication library here, for example
            # library_dirs=["/opt/acme/lib"], libraries=["acme_collectives"],
            extra_compile_args={"cxx": fast_to_compile + strict},
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
)
# [/setup]
