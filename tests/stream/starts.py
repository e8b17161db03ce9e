"""One rank of a start at a store that stays, until it is killed: `python starts.py PORT RANK`."""

import sys
import time
from datetime import timedelta

import stream_collectives  # noqa: F401
import torch
import torch.distributed as dist

port, rank = int(sys.argv[1]), int(sys.argv[2])
torch.accelerator.set_device_index(rank)
limit = timedelta(seconds=60)
store = dist.TCPStore("localhost", port, is_master=False, timeout=limit)
print("begins", flush=True)
dist.init_process_group("simccl", store=store, rank=rank, world_size=2, timeout=limit)
dist.all_reduce(total := torch.full((1,), rank + 1.0, device=torch.device("sim", rank)))
print(total.item(), flush=True)
time.sleep(100)
