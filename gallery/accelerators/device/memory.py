"""Program: see which stream gets the memory of a tensor that is gone."""

import torch

import simulated_accelerator  # importing it makes torch.sim

# [memory]
number = torch.ones(1000, device="sim")
address = number.data_ptr()
print("bytes in use:", torch.accelerator.memory_allocated())
del number
with torch.Stream():
    print("used by another stream:", torch.empty(1000, device="sim").data_ptr() == address)
print("used again:", torch.empty(1000, device="sim").data_ptr() == address)
# [/memory]
