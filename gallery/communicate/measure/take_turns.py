"""Worker: measure three backends in turns."""

import gc
import resource
import statistics
import time
from functools import partial

import torch
import torch.distributed as dist
from torch.testing._internal.distributed import fake_pg  # importing it registers "fake"

import shm_collectives  # importing it registers "shm"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("shm", store=store, rank=rank, world_size=size)
gc.disable()
zeros = torch.zeros(1 << 24)


# [measure]
def measure(calls, rounds=9):
    """Return the times of each call in milliseconds: a list with one for each round."""
    samples = {name: [] for name in calls}
    for call in calls.values():
        call()  # The first call may take longer.
    for number in range(rounds):
        for name in sorted(calls, reverse=number % 2):
            dist.barrier()
            start = time.perf_counter()
            calls[name]()
            samples[name].append((time.perf_counter() - start) * 1000)
    slowest = torch.tensor(list(samples.values()))
    dist.all_reduce(slowest, dist.ReduceOp.MAX)  # An operation ends on its last rank.
    return dict(zip(samples, slowest.tolist(), strict=True))


# [/measure]
# [turns]
groups = {name: dist.new_group(backend=name) for name in ("fake", "gloo", "shm")}
times = measure({x: partial(dist.all_reduce, zeros, group=groups[x]) for x in groups})
if rank == 0:
    for name, samples in times.items():
        low, median, high = statistics.quantiles(samples, method="inclusive")
        print(f"{name}: median {median:.2f} ms, quartiles {low:.2f} ms and {high:.2f} ms")
# [/turns]
assert min(groups, key=lambda name: statistics.median(times[name])) == "fake"


def sleeps(group, calls=100):
    """Return how often a thread of this process sleeps during an all-reduce."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    for _ in range(calls):
        dist.all_reduce(torch.zeros(1), group=group)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before) / calls


assert sleeps(groups["gloo"]) > 1
dist.destroy_process_group()
