"""Worker: find a rank that does not come to a barrier."""

import re
from datetime import timedelta

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


group = dist.new_group(backend="shm")
# [missing]
if rank == 2:
    store.wait(["0 has its error", "1 has its error"])
else:
    try:
        monitored_barrier(group, timeout=timedelta(seconds=1))
    except RuntimeError as error:
        print(re.search(r"Rank \d .*? monitoredBarrier", str(error))[0])
    # [/missing]
    store.set(f"{rank} has its error", "")
dist.destroy_process_group()
