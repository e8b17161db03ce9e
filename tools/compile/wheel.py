"""Build the wheel of a Python project, in this environment, and unpack it into a folder.

usage: python -m tools.compile.wheel PROJECT FOLDER
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from .headers import NINJA


def build_wheel(project, folder):
    os.chdir(project)
    compile_as_before()
    from setuptools import build_meta  # The build backend that pyproject.toml names.

    with tempfile.TemporaryDirectory() as wheels:
        wheel = Path(wheels, build_meta.build_wheel(wheels))
        zipfile.ZipFile(wheel).extractall(folder)


def compile_as_before():
    """Compile with the last ninja file, if there is one, while PyTorch is being imported.

    That saves 2 of 10 seconds after an edit. Afterwards setup.py runs ninja for the same, which
    has nothing left to do, or reports what does not compile.
    """
    known = [file.parent for file in Path().glob(NINJA)]
    compiling = [
        subprocess.Popen(["ninja", "-C", folder], stdout=subprocess.PIPE, text=True)
        for folder in known
    ]
    if compiling:
        import torch.utils.cpp_extension  # noqa: F401
    for process in compiling:
        output, _ = process.communicate()
        if process.returncode == 0:  # There may be warnings in it.
            print(output, flush=True)


if __name__ == "__main__":
    build_wheel(*(Path(argument).resolve() for argument in sys.argv[1:]))
