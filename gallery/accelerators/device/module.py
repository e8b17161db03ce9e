"""Program: use the device sim by the functions of its module."""

# [module]
import torch

import simulated_accelerator

accelerator = torch.accelerator.current_accelerator()
print("accelerator:", accelerator, "with", torch.accelerator.device_count(), "devices")
print("torch.sim is the module:", torch.sim is simulated_accelerator)
print("available:", torch.accelerator.is_available(), torch.sim.is_initialized())
with torch.autocast("sim", dtype=torch.bfloat16):
    print("autocast:", torch.nn.Linear(1, 1, device="sim")(torch.ones(1, device="sim")).dtype)
# [/module]
