"""Stop at once without the extension."""

import pytest


def pytest_configure():
    try:
        import dummy_collectives  # noqa: F401
    except ImportError as error:
        message = "dummy_collectives is not built: run `make compile`"
        pytest.exit(f"{message} ({error})", returncode=1)
