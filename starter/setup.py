import c10d_frame
import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, include_paths

# Without debug information, it compiles faster.
fast_to_compile = ["-O2", "-g0", "-fvisibility=hidden"]

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
            name=f"acme_collectives._for_torch_{major}_{minor}",
            # All else is headers, so that the compiler reads those of PyTorch once.
            sources=["src/registration.cpp"],
            # For "frame/..." and "store/...", which pip installs and upgrades.
            include_dirs=[c10d_frame.get_include()],
            # A library that moves the bytes is linked here. If it loads plug-ins, exclude it from a
            # wheel, which would lack them. For example:
            # library_dirs=["/opt/acme/lib"], libraries=["acme"],
            # extra_link_args=["-Wl,-rpath,/opt/acme/lib"],
            extra_compile_args={"cxx": fast_to_compile + strict},
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
)
