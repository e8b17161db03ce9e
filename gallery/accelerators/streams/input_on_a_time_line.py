"""The streams of rank 0, with an input that is late."""

import torch
import torch.distributed as dist
from time_line import draw
from two_ways import device, end, new_group, rank


# [program]
def time_line(broken):
    group = new_group(broken)
    number = torch.zeros(1, device=device)
    torch.accelerator.synchronize()
    torch.sim.start_trace()
    gate = torch.sim.Gate()
    gate.hold()
    number.fill_(rank + 1)
    dist.all_reduce(number, group=group)  # returns while the gate is closed
    torch.sim.settle()
    gate.open()
    torch.accelerator.synchronize()
    names = ["communication", "caller"] if broken else ["caller", "communication"]
    return draw(torch.sim.stop_trace(), names, waits=True)


for broken in ["", "input"]:
    lines = time_line(broken)
    if rank == 0:
        print("broken:" if broken else "kept:")
        print(lines)
# [/program]
end()
