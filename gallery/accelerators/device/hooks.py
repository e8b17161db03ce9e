"""Program: pinned memory, storages that change their size, and random numbers."""

import torch

import simulated_accelerator  # importing it makes torch.sim

# [hooks]
numbers = torch.arange(4.0).pin_memory()
there = numbers.to("sim", non_blocking=True)
print("pinned:", numbers.is_pinned(), "copied:", there.tolist())
storage = there.untyped_storage()
print("bytes of the storage:", storage.size(), storage.resize_(0).size(), storage.resize_(16).size())
generator = torch.Generator("sim").manual_seed(0)
drawn = torch.rand(2, device="sim", generator=generator)
torch.manual_seed(0)
print("the same numbers:", torch.rand(2, device="sim").tolist() == drawn.tolist())
# [/hooks]
