"""A rank that mpiexec starts; with an argument, in a group of its own."""

import os
import sys

import mpi_collectives  # noqa: F401
import torch
import torch.distributed as dist

rank, size = os.environ["PMI_RANK"], os.environ["PMI_SIZE"]
store = dist.TCPStore("127.0.0.1", int(os.environ["STORE"]), wait_for_workers=False)
if sys.argv[1:]:
    store, rank, size = dist.PrefixStore(rank, store), 0, 1
dist.init_process_group("mpich", store=store, rank=int(rank), world_size=int(size))
total = torch.ones(1000)
dist.all_reduce(total)
os.write(1, f"{total[0].item()}\n".encode())  # as a whole: the ranks share the pipe
dist.destroy_process_group()
