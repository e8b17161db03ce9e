"""wait() makes the current stream wait for the communication."""

import torch
import torch.distributed as dist
from two_ways import device, hold_communication, rank, show


# [program]
def ten_times_the_sum(group):
    number = torch.full((1,), rank + 1.0, device=device)
    gate = hold_communication(group)
    dist.all_reduce(number, group=group, async_op=True).wait()
    ten_times = number * 10
    torch.sim.settle()
    gate.open()
    return ten_times.item()


show("output", ten_times_the_sum)
# [/program]
