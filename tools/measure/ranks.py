"""Run the cases in the ranks of a group of each backend, interleaved."""

import contextlib
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from functools import partial
from importlib import import_module
from multiprocessing import resource_tracker
from pathlib import Path

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import ProcessException, start_processes

from ..project.errors import BuildError
from ..project.paths import SUITE

# The modules that register backends, except those that PyTorch registers itself.
MODULES = {
    "fake": "torch.testing._internal.distributed.fake_pg",
    "shm": "shm_collectives",
    "mpich": "mpi_collectives",
}

BLOCK = 0.01  # seconds that a sample takes, apart from calls that take longer
MOST_CALLS = 1000  # in a sample
OPERATION_TIMEOUT = timedelta(seconds=60)


def measure(setup, rounds, limit):
    """Return the median microseconds of each backend, for each case, of `rounds` samples.

    The ranks are new processes, all in the session of the caller, or each in one of its own, and
    on one host or on two simulated ones. Raises BuildError if a rank fails, or if they have not
    ended after `limit` seconds. No rank is left running.
    """
    with tempfile.TemporaryDirectory() as folder, _hosts(setup) as hosts:
        ranks = setup.ranks // len(hosts)
        contexts = []
        try:
            for number, call in enumerate(hosts):
                arguments = (number * ranks, setup, rounds, folder)
                start = partial(start_processes, _measure_in_rank, arguments, ranks, join=False)
                contexts.append(call(start))
            deadline = time.monotonic() + limit
            while False in [context.join(0.1) for context in contexts]:
                if time.monotonic() > deadline:
                    raise BuildError(f"the {setup.ranks} ranks have not ended after {limit} s")
        except ProcessException as error:
            raise BuildError(f"a rank failed: {error}") from None
        finally:
            for process in (x for context in contexts for x in context.processes):
                process.kill()
                process.join()
        return json.loads(Path(folder, "medians.json").read_text())


@contextlib.contextmanager
def _hosts(setup):
    """Return for each host a function that calls another one there."""
    if setup.network != "two hosts":
        yield [lambda function: function()]
        return
    sys.path.insert(0, str(SUITE))
    from c10d_conformance.hosts import HostsError, simulated_hosts

    # It would begin in the host that starts the first rank, and end with it.
    resource_tracker.ensure_running()
    try:
        with simulated_hosts(2) as hosts:
            yield [host.call for host in hosts]
    except HostsError as error:
        raise BuildError(str(error)) from None


def order(backends, number):
    """Return the backends in the order of a round: the other way around in every second one."""
    return backends if number % 2 == 0 else backends[::-1]


def _measure_in_rank(rank, first, setup, rounds, folder):
    rank += first
    for backend in setup.backends:
        if backend in MODULES:
            import_module(MODULES[backend])
    if setup.sessions != 1:
        os.setsid()  # As torchrun does. Linux then schedules the ranks in different autogroups.
    torch.set_num_threads(1)
    gc.disable()  # It would run in some samples and not in others.
    os.environ["GLOO_SOCKET_IFNAME"] = "eth0" if setup.network == "two hosts" else "lo"
    if setup.network == "TCP":
        os.environ["MPIR_CVAR_NOLOCAL"] = "1"
    # PyTorch's flight recorder takes some microseconds of each call of shm and gloo, but none of
    # fake's, which would then not be the floor.
    os.environ["TORCH_FR_BUFFER_SIZE"] = "0"
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(f"{folder}/store", setup.ranks),
        rank=rank,
        world_size=setup.ranks,
        timeout=OPERATION_TIMEOUT,
    )
    groups = {x: dist.new_group(backend=x, timeout=OPERATION_TIMEOUT) for x in setup.backends}
    medians = [_medians(case, groups, rounds) for case in setup.cases]
    if rank == 0:
        Path(folder, "medians.json").write_text(json.dumps(medians))
    dist.destroy_process_group()


def _medians(case, groups, rounds):
    """Return the microseconds of a call of each backend: the median of the rounds."""
    times = samples(case, groups, rounds)
    return {backend: statistics.median(found) for backend, found in times.items()}


def samples(case, groups, rounds, block=BLOCK):
    """Return the microseconds of a call of each group, one for each round, of the slowest rank."""
    gc.collect()
    calls = {name: case.call(group) for name, group in groups.items()}
    counts = {name: _calls_in_a_sample(call, block) for name, call in calls.items()}
    found: dict[str, list[float]] = {name: [] for name in groups}
    for number in range(rounds):
        for name in order([*groups], number):
            found[name].append(1e6 * _seconds(calls[name], counts[name]))
    return {name: _of_the_slowest_rank(times) for name, times in found.items()}


def _calls_in_a_sample(call, block):
    _seconds(call, 1)  # The first calls make connections and touch memory.
    [seconds] = _of_the_slowest_rank([_seconds(call, 3)])
    return max(1, min(MOST_CALLS, int(block / seconds)))


def _seconds(call, count):
    dist.barrier()
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def _of_the_slowest_rank(seconds):
    """Return the longest time of all ranks, element by element: an operation ends with it."""
    times = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(times, dist.ReduceOp.MAX)
    return times.tolist()
