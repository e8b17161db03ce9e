"""Worker: rank 1 starts each group late, and says whether rank 0 waited for it."""

import os
import time

import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

# [start]
store, rank, size = next(dist.rendezvous("env://"))


def start(backend, name):
    """Start a group; rank 1 first waits until rank 0 has it, but 3 seconds at most."""
    keys = dist.PrefixStore(name, store)
    if rank == 1:
        end = time.monotonic() + 3
        while not keys.check(["rank 0 has a group"]) and time.monotonic() < end:
            time.sleep(0.1)
        waited = not keys.check(["rank 0 has a group"])
        print(f"{name}: rank 0", "waited" if waited else "did not wait")
    dist.init_process_group(backend, store=keys, rank=rank, world_size=size)
    keys.set(f"rank {rank} has a group", "")
    # Gloo fails on a rank that still connects when another one has left.
    keys.wait([f"rank {other} has a group" for other in range(size)])
    dist.destroy_process_group()


start("dummy", "dummy")
start("gloo", "gloo")
os.environ["TORCH_DIST_INIT_BARRIER"] = "1"
start("dummy", "dummy with TORCH_DIST_INIT_BARRIER=1")
# [/start]
