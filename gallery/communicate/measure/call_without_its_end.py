"""Worker: measure an all-reduce without its end, and with it."""

import time
from functools import partial

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

dist.init_process_group("shm")
rank = dist.get_rank()
zeros = torch.zeros(1 << 24)
dist.all_reduce(zeros)


# [calls]
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
# [/calls]
dist.destroy_process_group()
