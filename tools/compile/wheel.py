"""Build the wheel of a Python project, in this environment, and unpack it into a folder.

usage: python -m tools.compile.wheel PROJECT FOLDER

pip would do the same, and import PyTorch twice more: for the requirements and for the metadata.
"""

import os
import sys
import tempfile
import zipfile
from pathlib import Path

from setuptools import build_meta  # The build backend that pyproject.toml names.


def build_wheel(project: Path, folder: Path) -> None:
    os.chdir(project)
    with tempfile.TemporaryDirectory() as wheels:
        wheel = Path(wheels, build_meta.build_wheel(wheels))
        zipfile.ZipFile(wheel).extractall(folder)


if __name__ == "__main__":
    build_wheel(*(Path(argument).resolve() for argument in sys.argv[1:]))
