"""Worker: three ranks meet, but rank 1 is missing, then too late, then in time."""

from datetime import timedelta

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

store, rank, size = next(dist.rendezvous("env://"))


def step(name, ranks):
    """Wait until these ranks are here, so that their timeouts begin together."""
    store.set(f"{name}: rank {rank}", "")
    store.wait([f"{name}: rank {other}" for other in ranks])


def attempt():
    """Create a group, and print the sum of the rank numbers or the error."""
    try:
        dist.init_process_group(
            "store", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=1)
        )
    except dist.DistStoreError as error:
        print(str(error).splitlines()[0])
        return
    tensor = torch.tensor(rank)
    dist.all_reduce(tensor)
    print("the sum of the rank numbers is", tensor.item())
    dist.destroy_process_group()


# [attempts]
if rank != 1:
    step("without rank 1", [0, 2])
    attempt()
step("rank 1 is too late", range(size))
if rank == 1:
    attempt()
step("all together", range(size))
attempt()
# [/attempts]
