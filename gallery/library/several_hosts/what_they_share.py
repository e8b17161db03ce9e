"""Compute a sum with the ranks of both hosts."""

import os
from datetime import timedelta

import mpi_collectives  # noqa: F401
import torch
import torch.distributed as dist

dist.init_process_group("mpich", timeout=timedelta(seconds=30))
rank, host = dist.get_rank(), os.environ["GROUP_RANK"]
total = torch.full((100_000,), float(rank))
dist.all_reduce(total)
line = f"rank {rank} on host {host}: the sum of all ranks is {total[0]:.0f}\n"
os.write(1, line.encode())  # as a whole: the ranks of a host share the pipe
dist.destroy_process_group()
