"""Simulated hosts. A test that needs them is skipped where this machine cannot simulate any."""

import contextlib

import pytest
from c10d_conformance.hosts import HostsError, simulated_hosts


@contextlib.contextmanager
def hosts_or_skip(count, **links):
    """Return hosts, whose links may have a latency and a rate."""
    try:
        with simulated_hosts(count, **links) as hosts:
            yield hosts
    except HostsError as error:
        pytest.skip(str(error))
