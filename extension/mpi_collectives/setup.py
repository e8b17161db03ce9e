# [setup]
import sys
from importlib import metadata
from pathlib import Path

import c10d_frame
import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, include_paths

# As for the dummy: little optimization, no debug information, all warnings for our own code.
fast_to_compile = ["-O1", "-g0", "-fvisibility=hidden"]
strict = ["-Wall", "-Wextra", *(f"-isystem{path}" for path in include_paths())]

major, minor, *_ = torch.__version__.split(".")

# [library]
# The wheel of MPICH has put mpi.h and its library into folders of the environment.
try:
    installed = {file.name: Path(file.locate()).resolve() for file in metadata.files("mpich")}
except metadata.PackageNotFoundError:
    sys.exit("error: MPICH is missing: pip install mpich")
library = installed["libmpi.so.12"]
mpi = {
    "extra_objects": [str(library)],
    "extra_link_args": [
        "-Wl,-rpath,$ORIGIN/../../..",  # installed beside MPICH: <prefix>/lib
        f"-Wl,-rpath,{library.parent}",  # anywhere else on this machine
    ],
}
# [/library]

setup(
    install_requires=[f"torch=={major}.{minor}.*", "mpich==5.0.*"],
    ext_modules=[
        CppExtension(
            name=f"mpi_collectives._for_torch_{major}_{minor}",
            # All else is headers, so that the compiler reads those of PyTorch once.
            sources=["src/registration.cpp"],
            # The headers of the frame are included as "frame/...".
            include_dirs=[c10d_frame.get_include()],
            extra_compile_args={
                "cxx": [*fast_to_compile, *strict, f"-isystem{installed['mpi.h'].parent}"]
            },
            **mpi,
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
)
# [/setup]
