"""Worker: wait for several works with one limit, and tell which of them have not ended."""

import time
from datetime import timedelta

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("shm", store=store, rank=rank, world_size=size)


# [solution]
def unfinished(works, seconds):
    """Wait for all works, `seconds` in total; return the indices of those that have not ended."""
    deadline = time.monotonic() + seconds
    indices = []
    for index, work in enumerate(works):
        left = max(deadline - time.monotonic(), 0.001)  # Zero would be no limit.
        try:
            work.wait(timedelta(seconds=left))
        except dist.DistBackendError:
            if work.is_completed():
                work.wait()  # Raises the error of the operation, if it has one.
            else:
                indices.append(index)
    return indices


# [/solution]
def reduce(count, group=None):
    return [dist.all_reduce(torch.ones(1), group=group, async_op=True) for _ in range(count)]


dist.barrier()
if rank == 0:
    works = reduce(4)
    store.wait(["rank 1 has called one"])
    print("rank 1 has called one of four, unfinished:", unfinished(works, 0.5))
    store.set("rank 1 may call the others", "")
    print("rank 1 calls the others, unfinished:", unfinished(works, 60))
else:
    works = reduce(1)
    works[0].wait()
    store.set("rank 1 has called one", "")
    store.wait(["rank 1 may call the others"])
    for work in reduce(3):
        work.wait()

group = dist.new_group(backend="shm", timeout=timedelta(seconds=2))
if rank == 0:
    try:
        unfinished(reduce(1, group), 60)
    except dist.DistBackendError as error:
        assert "Timed out after 2000 ms" in str(error)
        print("rank 1 never calls: DistBackendError")
    store.set("rank 0 has its error", "")
store.wait(["rank 0 has its error"])
dist.destroy_process_group()
