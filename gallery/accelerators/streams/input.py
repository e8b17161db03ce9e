"""The communication waits for the stream that makes its input."""

import torch
import torch.distributed as dist
from two_ways import device, rank, show


# [program]
def sum_of_late_numbers(group):
    number = torch.zeros(1, device=device)
    gate = torch.sim.Gate()
    gate.hold()  # what this stream gets from now on is late
    number.fill_(rank + 1)
    work = dist.all_reduce(number, group=group, async_op=True)
    torch.sim.settle()  # everything runs that does not wait for the gate
    gate.open()
    work.wait()
    return number.item()


show("input", sum_of_late_numbers)
# [/program]
