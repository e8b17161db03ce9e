"""Worker: find with the profiler which rank came last to each all-reduce."""

import random
import time

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

import shm_collectives  # importing it registers "shm"

dist.init_process_group("shm")
rank, size = dist.get_rank(), dist.get_world_size()
order = random.Random(1).sample(range(size), size)


def step(number):
    """Reduce a tensor. One of the ranks sleeps first."""
    if rank == order[number]:
        time.sleep(0.5)
    dist.all_reduce(torch.ones(10))


# [solution]
with profile(activities=[ProfilerActivity.CPU]) as recording:
    dist.barrier()  # the profiler may start later on one rank
    for number in range(size):
        step(number)

events = [event for event in recording.events() if event.name == "shm:all_reduce"]
durations = [event.time_range.elapsed_us() for event in events]
of_all_ranks = [None] * size
dist.all_gather_object(of_all_ranks, durations)

last = [times.index(min(times)) for times in zip(*of_all_ranks, strict=True)]
if rank == 0:
    print("the last ranks:", *last)
    # [/solution]
    print("the ranks that slept:", *order)
dist.destroy_process_group()
