# [setup]
import c10d_frame
import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, include_paths

# More optimization than the dummy, no debug information, all warnings for our own code.
fast_to_compile = ["-O2", "-g0", "-fvisibility=hidden"]
strict = ["-Wall", "-Wextra", *(f"-isystem{path}" for path in include_paths())]

major, minor, *_ = torch.__version__.split(".")

setup(
    install_requires=[f"torch=={major}.{minor}.*"],
    ext_modules=[
        CppExtension(
            name=f"shm_collectives._for_torch_{major}_{minor}",
            # All else is headers, so that the compiler reads those of PyTorch once.
            sources=["src/registration.cpp"],
            # The headers of the frame are included as "frame/...".
            include_dirs=[c10d_frame.get_include()],
            extra_compile_args={"cxx": fast_to_compile + strict},
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
)
# [/setup]
