"""Program: launch what has a kernel, and what the CPU does."""

import torch

import simulated_accelerator  # importing it makes torch.sim

# [program]
numbers = torch.ones(4, device="sim")
torch.accelerator.synchronize()
for name, operation in [("add", lambda: numbers + numbers), ("cumsum", lambda: numbers.cumsum(0))]:
    torch.sim.start_trace()
    operation()
    torch.accelerator.synchronize()
    names = [step[1] for step in torch.sim.stop_trace() if step[0] == "launch"]
    print(f"{name} launches", ", ".join(names))
# [/program]
