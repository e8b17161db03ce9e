"""Worker: profile an all-reduce for which rank 1 is late."""

import time

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

import shm_collectives  # importing it registers "shm"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("shm", store=store, rank=rank, world_size=size)

# [late]
with profile(activities=[ProfilerActivity.CPU]) as recording:
    if rank == 0:
        work = dist.all_reduce(torch.ones(10), async_op=True)
        store.set("rank 0 has called", "")
        work.wait()
    else:
        store.wait(["rank 0 has called"])
        time.sleep(0.3)
        dist.all_reduce(torch.ones(10))
ends = {event.name: event.time_range.end for event in recording.events()}
later = ends["shm:all_reduce"] - ends["c10d::allreduce_"]  # in microseconds
print("shm:all_reduce ends more than 0.2 s after the call:", later > 200_000)
# [/late]
dist.barrier()
dist.destroy_process_group()
