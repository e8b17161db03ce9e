# [setup]
import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, include_paths

flags = ["-O1", "-g0", "-fvisibility=hidden"]  # to compile quickly
# All warnings for our own code, and none for PyTorch's headers, which -isystem marks.
flags += ["-Wall", "-Wextra", *(f"-isystem{path}" for path in include_paths())]

major, minor, *_ = torch.__version__.split(".")
setup(
    install_requires=[f"torch=={major}.{minor}.*"],
    ext_modules=[
        CppExtension(
            f"dummy_collectives._for_torch_{major}_{minor}",
            sources=["src/dummy.cpp"],
            extra_compile_args=flags,
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=False)},
)
# [/setup]
