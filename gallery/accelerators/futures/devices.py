"""A future knows its device, so that a callback comes after the communication."""

import torch
import torch.distributed as dist
from two_ways import device, hold_communication, rank, show


# [program]
def ten_times_the_sum(group):
    number = torch.full((1,), rank + 1.0, device=device)
    torch.accelerator.synchronize()
    gate = hold_communication(group)
    future = dist.all_reduce(number, group=group, async_op=True).get_future()
    ten_times = future.then(lambda future: future.value()[0] * 10)
    torch.sim.settle()
    gate.open()
    return ten_times.wait().item()
# [/program]


show("devices", ten_times_the_sum)
