"""What MPI takes from the environment."""

import pytest


@pytest.fixture
def way(request, monkeypatch):
    """Let the ranks of this host use the way of MPI that a test names."""
    monkeypatch.setenv("MPIR_CVAR_NOLOCAL", str(int(request.param == "network")))
