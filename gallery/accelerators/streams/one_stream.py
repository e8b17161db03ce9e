"""Program: launch kernels while a gate holds their stream, and draw what runs when."""

import simulated_accelerator  # noqa: F401  # importing it makes torch.sim
import torch
from time_line import draw

device = torch.device("sim")
number = torch.zeros(1, device=device)
torch.accelerator.synchronize()

# [program]
torch.sim.start_trace()
gate = torch.sim.Gate()
gate.hold()
number.fill_(3)
number.mul_(10)
print("has the stream ended:", torch.accelerator.current_stream().query())
gate.open()
torch.accelerator.synchronize()
print(draw(torch.sim.stop_trace(), ["stream"]))
# [/program]
