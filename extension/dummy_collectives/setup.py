# [setup]
from pathlib import Path

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, include_paths

# Little optimization and no debug information. A file that includes ATen compiles in
# half the time of setuptools' default, -O3 -g.
fast_to_compile = ["-O1", "-g0", "-fvisibility=hidden"]

# All warnings for our own code, and none for PyTorch's headers, which -isystem marks.
strict = ["-Wall", "-Wextra", *(f"-isystem{path}" for path in include_paths())]

# A build works with one minor release of PyTorch. With another one it can crash or call the
# wrong methods. So the package requires this release, and the module's name contains it:
# __init__.py looks for that name.
major, minor, *_ = torch.__version__.split(".")

setup(
    install_requires=[f"torch=={major}.{minor}.*"],
    ext_modules=[
        CppExtension(
            name=f"dummy_collectives._for_torch_{major}_{minor}",
            sources=["src/dummy.cpp"],
            # An absolute path, because ninja runs in another folder.
            include_dirs=[str(Path(__file__).resolve().parent / "include")],
            # A real backend links its communication library here, for example
            # library_dirs=["/opt/acme/lib"], libraries=["acme_collectives"],
            # extra_link_args=["-Wl,-rpath,/opt/acme/lib"],
            extra_compile_args={"cxx": fast_to_compile + strict},
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
)
# [/setup]
