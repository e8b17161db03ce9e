"""Worker: measure three backends in turns, and then a call without its end."""

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
quartiles = {x: statistics.quantiles(times[x], method="inclusive") for x in times}
if rank == 0:
    print("the smallest median:", min(quartiles, key=lambda x: quartiles[x][1]))


# [/turns]
def sleeps(group, calls=100):
    """Return how often a thread of this process sleeps during an all-reduce."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    for _ in range(calls):
        dist.all_reduce(torch.zeros(1), group=group)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before) / calls


assert sleeps(groups["gloo"]) > 1


# [mistake]
def seconds(call):
    """Return how long a call takes on this rank. Rank 1 comes half a second late."""
    dist.barrier()
    if rank == 1:
        time.sleep(0.5)
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


start = partial(dist.all_reduce, zeros, async_op=True)
calls = {"the call": start, "the call and wait()": lambda: start().wait()}
for name, call in calls.items():
    time_of_call = seconds(call)
    if rank == 0:
        print(f"{name}: {'more' if time_of_call > 0.25 else 'less'} than 0.25 s")
# [/mistake]
dist.destroy_process_group()
