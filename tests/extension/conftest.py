"""Let the tests import the launcher, and stop at once without the extension."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "gallery"))


def pytest_configure():
    try:
        import dummy_collectives  # noqa: F401
    except ImportError as error:
        message = "dummy_collectives is not built: run `make compile`"
        pytest.exit(f"{message} ({error})", returncode=1)
