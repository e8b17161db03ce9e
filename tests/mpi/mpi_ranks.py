"""Run a function in several ranks of a group of `mpich`."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import mpi_collectives  # noqa: F401
import pytest
from ranks import run_by_server, start_by_server, store_server

# MPI shares memory between the ranks of a host, unless it is told not to: its network is what
# several hosts use, and fails in other ways.
BOTH_WAYS = pytest.mark.parametrize("way", ["memory", "network"], indirect=True)


start = partial(start_by_server, "mpich", None)
run = partial(run_by_server, start)


def by_mpiexec(*arguments):
    """Let mpiexec start two ranks of by_mpiexec.py, and return what they have done."""
    command = [Path(sys.prefix, "bin", "mpiexec"), "-n", "2", sys.executable]
    command += [Path(__file__).with_name("by_mpiexec.py"), *arguments]
    with store_server() as (_, port):
        environment = {**os.environ, "STORE": str(port)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
