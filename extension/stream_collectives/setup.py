# [setup]
from pathlib import Path

import c10d_frame
import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, include_paths

# As for the dummy: little optimization, no debug information, all warnings for our own code.
fast_to_compile = ["-O1", "-g0", "-fvisibility=hidden"]
strict = ["-Wall", "-Wextra", *(f"-isystem{path}" for path in include_paths())]

here = Path(__file__).resolve().parent
major, minor, *_ = torch.__version__.split(".")

setup(
    install_requires=[f"torch=={major}.{minor}.*"],
    ext_modules=[
        CppExtension(
            name=f"stream_collectives._for_torch_{major}_{minor}",
            # All else is headers, so that the compiler reads those of PyTorch once.
            sources=["src/registration.cpp"],
            # For "frame/..." and "streams/...", the device, and the files of sim.
            include_dirs=[c10d_frame.get_include(), str(here.parent), str(here / "src" / "sim")],
            extra_compile_args={"cxx": fast_to_compile + strict},
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
)
# [/setup]
