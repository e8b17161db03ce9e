"""Worker: find a mismatch between ranks before the operation, and a rank that is missing."""

import re
from datetime import timedelta

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("shm", store=store, rank=rank, world_size=size)


def monitored_barrier(group, timeout):
    """Call the function of PyTorch; that of 2.13 refuses groups of other backends than gloo."""
    if hasattr(dist, "set_timeout"):
        dist.monitored_barrier(group, timeout)
    else:
        group.monitored_barrier(timeout)


# [shapes]
def reduce(shape, group):
    """Return the sum over all ranks, or the end of the error."""
    try:
        tensor = torch.ones(shape)
        dist.all_reduce(tensor, group=group)
        return tensor.tolist()
    except RuntimeError as error:
        return str(error).partition("following aspects:")[2].strip()


shape = (2, 3) if rank == 0 else (3, 2)

group = dist.new_group(backend="shm")
print("OFF:   ", reduce(shape, group))

dist.set_debug_level(dist.DebugLevel.DETAIL)
group = dist.new_group(backend="shm")
print("DETAIL:", reduce(shape, group))
print("the next call:", reduce((2,), group))
# [/shapes]
dist.set_debug_level(dist.DebugLevel.OFF)
# [missing]
group = dist.new_group(backend="shm")
if rank == 2:
    store.wait(["0 has its error", "1 has its error"])
else:
    try:
        monitored_barrier(group, timeout=timedelta(seconds=1))
    except RuntimeError as error:
        print(re.search(r"Rank \d .*? monitoredBarrier", str(error))[0])
    store.set(f"{rank} has its error", "")
# [/missing]
dist.destroy_process_group()
