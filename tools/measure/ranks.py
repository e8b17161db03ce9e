"""Run the cases in the ranks of a group of each backend, interleaved."""

import gc
import json
import os
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import ProcessException, start_processes

from ..project.errors import BuildError
from .summary import BACKENDS

BLOCK = 0.01  # seconds that a sample takes, apart from calls that take longer
MOST_CALLS = 1000  # in a sample
OPERATION_TIMEOUT = timedelta(seconds=60)


def measure(ranks, sessions, cases, rounds, limit):
    """Return the median microseconds of each backend, for each case, of `rounds` samples.

    The ranks are new processes, all in the session of the caller, or each in one of its own.
    Raises BuildError if a rank fails, or if they have not ended after `limit` seconds. No rank
    is left running.
    """
    with tempfile.TemporaryDirectory() as folder:
        context = start_processes(
            _measure_in_rank, (ranks, sessions, cases, rounds, folder), ranks, join=False
        )
        try:
            deadline = time.monotonic() + limit
            while not context.join(max(0, deadline - time.monotonic())):
                if time.monotonic() > deadline:
                    raise BuildError(f"the {ranks} ranks have not ended after {limit} s")
        except ProcessException as error:
            raise BuildError(f"a rank failed: {error}") from None
        finally:
            for process in context.processes:
                process.kill()
                process.join()
        return json.loads(Path(folder, "medians.json").read_text())


def order(number):
    """Return the backends in the order of a round: the other way around in every second one."""
    return BACKENDS if number % 2 == 0 else BACKENDS[::-1]


def _measure_in_rank(rank, ranks, sessions, cases, rounds, folder):
    import shm_collectives  # noqa: F401
    from torch.testing._internal.distributed import fake_pg  # noqa: F401

    if sessions > 1:
        os.setsid()  # As torchrun does. Linux then schedules the ranks in different autogroups.
    torch.set_num_threads(1)
    gc.disable()  # It would run in some samples and not in others.
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    # PyTorch's flight recorder takes some microseconds of each call of shm and gloo, but none of
    # fake's, which would then not be the floor.
    os.environ["TORCH_FR_BUFFER_SIZE"] = "0"
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(f"{folder}/store", ranks),
        rank=rank,
        world_size=ranks,
        timeout=OPERATION_TIMEOUT,
    )
    groups = {x: dist.new_group(backend=x, timeout=OPERATION_TIMEOUT) for x in BACKENDS}
    medians = [_medians(case, groups, rounds) for case in cases]
    if rank == 0:
        Path(folder, "medians.json").write_text(json.dumps(medians))
    dist.destroy_process_group()


def _medians(case, groups, rounds):
    """Return the microseconds of a call of each backend: the median of the rounds."""
    gc.collect()
    calls = {backend: case.call(group) for backend, group in groups.items()}
    counts = {backend: _calls_in_a_sample(call) for backend, call in calls.items()}
    samples: dict[str, list[float]] = {backend: [] for backend in BACKENDS}
    for number in range(rounds):
        for backend in order(number):
            samples[backend].append(_seconds(calls[backend], counts[backend]))
    slowest = {backend: _of_the_slowest_rank(seconds) for backend, seconds in samples.items()}
    return {backend: statistics.median(seconds) * 1e6 for backend, seconds in slowest.items()}


def _calls_in_a_sample(call):
    _seconds(call, 1)  # The first calls make connections and touch memory.
    [seconds] = _of_the_slowest_rank([_seconds(call, 3)])
    return max(1, min(MOST_CALLS, int(BLOCK / seconds)))


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
