"""Shared by all tests: the environment that every process they start gets."""

import os
import tempfile

from tools.paths import INSTALLED_EXTENSION

# pytest's own `pythonpath` does not reach the ranks, which are other processes.
os.environ["PYTHONPATH"] = str(INSTALLED_EXTENSION)
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Whatever the tests and their processes leave in temporary folders goes in the end.
_TEMPORARY = tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True)
os.environ["TMPDIR"] = tempfile.tempdir = _TEMPORARY.name


def pytest_unconfigure():
    _TEMPORARY.cleanup()
