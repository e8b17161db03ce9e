"""Worker: one thread of rank 0 waits for rank 1, and another thread lets rank 1 come."""

import threading
import time

import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

store, rank, size = next(dist.rendezvous("env://"))


# [threads]
def join():
    dist.init_process_group("shm", store=store, rank=rank, world_size=size)


if rank == 0:
    thread = threading.Thread(target=join)
    thread.start()
    time.sleep(0.5)
    print("one thread waits for rank 1:", thread.is_alive())
    store.set("come", "")
    # [/threads]
    thread.join()
else:
    store.wait(["come"])
    join()
print("the group has", dist.get_world_size(), "ranks")
dist.destroy_process_group()
