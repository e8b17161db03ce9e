"""A work is completed when every stream may read the result."""

import torch
import torch.distributed as dist
from two_ways import device, hold_communication, rank, show


# [program]
def ten_times_the_sum(group):
    number = torch.full((1,), rank + 1.0, device=device)
    torch.accelerator.synchronize()
    gate = hold_communication(group)
    work = dist.all_reduce(number, group=group, async_op=True)
    while not work.is_completed():
        gate.open()
    with torch.Stream():  # which waits for no other stream
        ten_times = number * 10
        torch.sim.settle()
        gate.open()
        return ten_times.item()


show("completion", ten_times_the_sum)
# [/program]
