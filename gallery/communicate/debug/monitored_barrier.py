"""Worker: find a rank that does not come to a barrier."""

import re
from datetime import timedelta

import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("shm", store=store, rank=rank, world_size=size)


# [missing]
gloo = dist.new_group(backend="gloo")


def check():
    dist.monitored_barrier(gloo, timeout=timedelta(seconds=1))
    # [/missing]


if rank == 2:
    store.wait(["0 has its error", "1 has its error"])
else:
    try:
        check()
    except RuntimeError as error:
        print(re.search(r"Rank \d .*? monitoredBarrier", str(error))[0])
    store.set(f"{rank} has its error", "")
dist.destroy_process_group()
