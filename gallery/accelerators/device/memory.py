"""Program: see what becomes of memory, and what the hooks give."""

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
