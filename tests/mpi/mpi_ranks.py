"""Run a function in several ranks of a group of `mpich`."""

import os
import subprocess
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path

import mpi_collectives  # noqa: F401
import pytest
import torch
import torch.distributed as dist
from ranks import client, run_by_server, start_by_server, store_server
from torch._C._distributed_c10d import _DistributedBackendOptions

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
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


def backend(name, rank, size, seconds=300, store=None):
    """Create a backend beside the groups of torch.distributed, as libraries of programs do."""
    options = _DistributedBackendOptions()
    options.store = store or dist.PrefixStore(name, client())
    options.group_rank, options.group_size, options.group_id = rank, size, name
    options.timeout = timedelta(seconds=seconds)
    return dist.Backend._plugins["MPICH"].creator_fn(options, None)


def sum_in(group, value, numbers=1000):
    """Return the sum of a number of each rank."""
    tensor = torch.full((numbers,), float(value))
    group.allreduce([tensor]).wait()
    return tensor.unique().tolist()


def names_in_shared_memory():
    """Return the names of memory that MPI has in this process, and that it has left."""
    maps = Path("/proc/self/maps").read_text()
    names = {line.split()[5] for line in maps.splitlines() if "/dev/shm/mpich" in line}
    return [name for name in names if Path(name).exists()]


class ChangedStore(dist.Store):
    """A store in which `change(key, value)` gives the value that is written."""

    def __init__(self, store, change):
        super().__init__()
        self.store, self.change = store, change

    def set(self, key, value):
        self.store.set(key, self.change(key, value))

    def get(self, key):
        return self.store.get(key)

    def compare_set(self, key, expected, desired):
        return self.store.compare_set(key, expected, desired)

    def add(self, key, amount):
        return self.store.add(key, amount)

    def check(self, keys):
        return self.store.check(keys)

    def wait(self, keys, *limit):
        return self.store.wait(keys, *limit)

    def deleteKey(self, key):
        return self.store.delete_key(key)

    def hasExtendedApi(self):
        return False
