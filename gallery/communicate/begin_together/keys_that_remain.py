"""Worker: the solution of the exercise. Three ranks meet twice, and list what remains."""

import re

import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

# [solution]
store, rank, size = next(dist.rendezvous("env://"))
for meeting in [1, 2]:
    dist.init_process_group("shm", store=store, rank=rank, world_size=size)
    dist.barrier()  # All ranks have read the verdict.
    if rank == 0:
        keys = [key.split("shm/")[-1] for key in store.list_keys() if "shm/" in key]
        print(f"keys after meeting {meeting}: {len(keys)}")
        print("   ", sorted({re.sub(r"\d\d+", "<number>", key) for key in keys}))
    dist.barrier()  # The others meet again only after rank 0 has listed the keys.
    dist.destroy_process_group()
# [/solution]
