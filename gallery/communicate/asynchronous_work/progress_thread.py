"""Worker: print when the rank has a progress thread."""

import time
from pathlib import Path

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("shm", store=store, rank=rank, world_size=size)


# [threads]
def progress_threads():
    """Return how many progress threads this process has."""
    names = [comm.read_text().strip() for comm in Path("/proc/self/task").glob("*/comm")]
    return names.count("shm_progress")


tensor = torch.ones(1)
for _ in range(10):
    dist.all_reduce(tensor)
print("after ten synchronous calls:", progress_threads())

if rank == 0:
    work = dist.all_reduce(tensor, async_op=True)
    threads = 0
    while not threads:
        time.sleep(0.001)  # the new thread sets its name itself
        threads = progress_threads()
    print("while an asynchronous call waits for rank 1:", threads)
    store.set("rank 0 has its thread", "")
    work.wait()
else:
    store.wait(["rank 0 has its thread"])
    dist.all_reduce(tensor)
dist.destroy_process_group()
print("after destroy_process_group:", progress_threads())
# [/threads]
assert tensor.item() == 2**11
