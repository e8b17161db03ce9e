"""Ranks whose default group knows its device, so that new groups are splits of it."""

import os

import stream_collectives  # noqa: F401
import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
device = torch.device("sim", rank)
dist.init_process_group("simccl", device_id=device)
number = torch.full((1,), rank + 1.0, device=device)
dist.all_reduce(number)
alone = dist.new_group([0])
if rank == 0:
    dist.all_reduce(number, group=alone)
dist.barrier()
both = dist.new_group([0, 1])
dist.all_reduce(number, group=both)
print(number.item(), torch.accelerator.current_device_index())
dist.destroy_process_group()
