"""A rank on a simulated host: computes, and prints its error when another rank is lost to it.

usage: python host_rank.py STORE RANK SIZE HEARTBEAT
"""

import os
import signal
import sys
from datetime import timedelta

import tcp_collectives
import torch
import torch.distributed as dist
from ranks import error_of

path, rank, size, heartbeat = sys.argv[1], *map(int, sys.argv[2:])
options = tcp_collectives.Options()
options.heartbeat = timedelta(seconds=heartbeat)
dist.init_process_group(
    "tcp",
    store=dist.FileStore(path, size),
    rank=rank,
    world_size=size,
    pg_options=options,
    timeout=timedelta(seconds=300),
)

dist.all_reduce(total := torch.full((100_000,), float(rank)))
dist.send(total, (rank + 1) % size) if rank % 2 == 0 else dist.recv(total, rank - 1)
print(total[-1].item(), flush=True)
order = sys.stdin.readline().strip()
if order == "die":
    os.kill(os.getpid(), signal.SIGKILL)
if order:
    kind, text, _ = error_of(dist.all_reduce, total)
    print(kind, text.splitlines()[-1], flush=True)
dist.destroy_process_group()
