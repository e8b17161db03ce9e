"""Worker: print when the thread of a rank that drives has been woken."""

import re
import time
from pathlib import Path

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("shm", store=store, rank=rank, world_size=size)


# [threads]
def sleeps():
    """Return how often the thread of the backend has gone to sleep, or None without a thread."""
    for thread in Path("/proc/self/task").iterdir():
        if (thread / "comm").read_text() == "shm_driver\n":
            status = (thread / "status").read_text()
            return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.M)[1])


time.sleep(0.1)  # the new thread begins, and goes to sleep
before, tensor = sleeps(), torch.ones(1)
for _ in range(10):
    dist.all_reduce(tensor)
print("ten synchronous calls have woken the thread:", sleeps() != before)

if rank == 0:
    work = dist.all_reduce(tensor, async_op=True)
    woken = False
    while not woken:
        time.sleep(0.001)
        woken = sleeps() != before
    print("an asynchronous call, which waits for rank 1, has woken it")
    store.set("rank 0 has woken its thread", "")
    work.wait()
else:
    store.wait(["rank 0 has woken its thread"])
    dist.all_reduce(tensor)
dist.destroy_process_group()
print("after destroy_process_group, there is a thread:", sleeps() is not None)
# [/threads]
assert tensor.item() == 2**11
