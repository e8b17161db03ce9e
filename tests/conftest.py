"""Shared by all tests: the environment that every process they start gets."""

import os

from tools.paths import INSTALLED_EXTENSION

# pytest's own `pythonpath` does not reach the ranks, which are other processes.
os.environ["PYTHONPATH"] = str(INSTALLED_EXTENSION)
os.environ.setdefault("OMP_NUM_THREADS", "1")
