"""Worker: rank 1 lacks memory for one step, and both ranks skip it."""

import torch
import torch.distributed as dist

from out_of_memory import average, has_memory_for, lengths

# [together]
for step, length in enumerate(lengths):
    all_have_memory = torch.tensor(int(has_memory_for(length)))
    dist.all_reduce(all_have_memory, dist.ReduceOp.MIN)
    if all_have_memory:
        average(step)
    else:
        print(f"step {step}: skipped")
# [/together]
dist.destroy_process_group()
