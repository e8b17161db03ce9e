"""Worker: rank 1 is late, and checks whether rank 0 has waited for it."""

import os
import time

import torch
import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

rank = int(os.environ["RANK"])
address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
served_by_torchrun = dist.TCPStore(address, port)

for backend in ("gloo", "dummy"):
    store = dist.PrefixStore(backend, served_by_torchrun)
    if rank == 0:
        store.set("rank 0 calls", "")
    else:
        store.wait(["rank 0 calls"])
        time.sleep(1)
        has_returned = store.check(["rank 0 has returned"])
        print(f"{backend:5}  rank 0 has {'returned' if has_returned else 'waited'}")
        assert has_returned == (backend == "dummy")
    dist.init_process_group(backend, store=store, rank=rank, world_size=2)
    if rank == 0:
        store.set("rank 0 has returned", "")
    dist.all_reduce(torch.zeros(1))  # Neither rank closes connections while the other connects.
    dist.destroy_process_group()
