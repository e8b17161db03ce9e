"""Find the compiled backend, and stop at once if there is none.

`SHM_COLLECTIVES=folder` names a folder to look in before all others.
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
if folder := os.environ.get("SHM_COLLECTIVES"):
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])


def pytest_configure():
    try:
        # This folder, which has the same name, would do for a mere import.
        from shm_collectives import register  # noqa: F401
    except ImportError as error:
        pytest.exit(f"shm_collectives is not built ({error})", returncode=1)
