"""Program: delete a tensor that a kernel has yet to read."""

import simulated_accelerator  # noqa: F401  # importing it makes torch.sim
import torch

device = torch.device("sim")

# [program]
number = torch.full((1,), 3.0, device=device)
torch.accelerator.synchronize()
other, gate = torch.Stream(), torch.sim.Gate()
with other:
    gate.hold()
    twice = number * 2
del number
next_owner = torch.full((1,), 99.0, device=device)
torch.accelerator.current_stream().synchronize()  # which the gate does not hold
gate.open()
torch.accelerator.synchronize()
print("twice the number:", twice.item())
# [/program]
