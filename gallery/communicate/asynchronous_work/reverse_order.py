"""Worker: wait for the second of two works, and then look at the first."""

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

dist.init_process_group("shm")

# [solution]
large, small = torch.ones(1 << 20), torch.ones(1)
first = dist.all_reduce(large, async_op=True)
second = dist.all_reduce(small, async_op=True)

second.wait()
print("the first is complete:", first.is_completed(), "with", large[-1].item())
first.wait()
# [/solution]
assert first.is_completed() and large.eq(2).all() and small.item() == 2
dist.destroy_process_group()
