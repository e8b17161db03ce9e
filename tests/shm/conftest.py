"""Register `shm`, and let the tests compute inputs and compare results as the suite does."""

import sys

import shm_collectives  # noqa: F401

from tools.project.paths import SUITE

sys.path.insert(0, str(SUITE))
