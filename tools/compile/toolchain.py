"""The tools that compile the extension: PyTorch, Python, the compiler and its variables."""

import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from ..project import releases
from ..project.errors import BuildError

# What setuptools, torch.utils.cpp_extension and compilers take from the environment.
VARIABLES = "CC CXX CFLAGS CPPFLAGS CXXFLAGS LDFLAGS LDSHARED LDCXXSHARED".split()
VARIABLES += ["CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"]


def toolchain():
    """Describe PyTorch, Python and the compiler; raise if one does not fit."""
    release = releases.current().version
    try:
        installed = metadata.version("torch")
    except metadata.PackageNotFoundError:
        installed = "none"
    if installed.partition("+")[0] != release:
        raise BuildError(
            f"{Path(sys.prefix).name} contains torch {installed}, but releases.toml "
            f"names {release} for it: remove that folder and run the command again"
        )
    version = subprocess.run([compiler(), "--version"], capture_output=True, text=True)
    return f"torch {installed}", f"Python {sys.version}", version.stdout


def compiler():
    """Return the command of the C++ compiler; raise if there is none."""
    command = os.environ.get("CXX", "c++")
    if shutil.which(command) is None:
        raise BuildError(
            f"no C++ compiler: the command {command!r} was not found. Install one "
            "(on Debian and Ubuntu: apt-get install g++), or name yours in CXX"
        )
    return command


def versions():
    """Name the versions of PyTorch, Python and the compiler as readers know them."""
    torch, python, compiler = toolchain()
    line = compiler.partition("\n")[0]
    name = "Clang" if "clang" in line else "GCC"
    number = re.search(r"\d+\.\d+(\.\d+)?", re.sub(r"\(.*?\)", "", line))
    return {
        "pytorch": torch.removeprefix("torch ").partition("+")[0],
        "python": python.removeprefix("Python ").partition(" ")[0],
        "compiler": f"{name} {number[0]}" if number else line,
    }


def compiled_with():
    """Return what the extension is compiled with, apart from its sources: for digests."""
    return [*toolchain(), *map(os.environ.get, VARIABLES)]
