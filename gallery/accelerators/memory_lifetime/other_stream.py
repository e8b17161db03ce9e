"""wait() on another stream than the memory's own: then record_stream() keeps the memory."""

import torch
import torch.distributed as dist
from two_ways import device, end, hold_communication, new_group, rank


# [program]
def gather_what_is_gone(recorded):
    group = new_group()
    number = torch.full((1,), rank + 1.0, device=device)
    all_numbers = [torch.empty(1, device=device) for _ in range(2)]
    gate = hold_communication(group)
    work = dist.all_gather(all_numbers, number, group=group, async_op=True)
    other = torch.Stream()
    with other:
        work.wait()  # the other stream comes after the communication; this one does not
    if recorded:
        number.record_stream(other)
    del number
    torch.full((1,), 99.0, device=device)  # takes the memory, if it is free
    torch.sim.settle()
    gate.open()
    torch.accelerator.synchronize()
    return [each.item() for each in all_numbers]
# [/program]


print("kept:", gather_what_is_gone(True))
print("broken:", gather_what_is_gone(False))
end()
