"""Build the wheel of a Python project, in this environment, and unpack it into a folder.

usage: python -m tools.compile.wheel PROJECT FOLDER
"""

import os
import platform
import sys
import tempfile
import zipfile
from pathlib import Path


def build_wheel(project, folder):
    os.chdir(project)
    # A Python of python.org's for macOS compiles for Intel's processors, too, PyTorch does not.
    os.environ.setdefault("ARCHFLAGS", f"-arch {platform.machine()}")
    from setuptools import build_meta  # The build backend that pyproject.toml names.

    with tempfile.TemporaryDirectory() as wheels:
        wheel = Path(wheels, build_meta.build_wheel(wheels))
        zipfile.ZipFile(wheel).extractall(folder)


if __name__ == "__main__":
    build_wheel(*(Path(argument).resolve() for argument in sys.argv[1:]))
