"""The same in DDP, which by default waits for futures and not for works."""

import torch
from two_ways import device, hold_communication, rank, show


# [program]
def gradient(group):
    model = torch.nn.Linear(1, 1, bias=False, device=device)
    model = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
    loss = model(torch.full((1,), rank + 1.0, device=device))
    gate = hold_communication(group)
    loss.backward()
    gradient = model.module.weight.grad * 1  # what an optimizer would read now
    torch.sim.settle()
    gate.open()
    return gradient.item()
# [/program]


show("devices", gradient)
