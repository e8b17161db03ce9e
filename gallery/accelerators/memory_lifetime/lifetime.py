"""The memory of an input stays until the communication has read it."""

import torch
import torch.distributed as dist
from two_ways import device, hold_communication, rank, show


# [program]
def gather_what_is_gone(group):
    number = torch.full((1,), rank + 1.0, device=device)
    all_numbers = [torch.empty(1, device=device) for _ in range(2)]
    gate = hold_communication(group)
    work = dist.all_gather(all_numbers, number, group=group, async_op=True)
    del number
    torch.full((1,), 99.0, device=device)  # takes the memory, if it is free
    torch.sim.settle()
    gate.open()
    work.wait()
    return [each.item() for each in all_numbers]
# [/program]


show("lifetime", gather_what_is_gone)
