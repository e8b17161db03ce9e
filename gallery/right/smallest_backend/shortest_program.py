"""Worker: the shortest program that uses the backend "store"."""

# [program]
import torch
import torch.distributed as dist

import store_collectives  # registers "store"

dist.init_process_group("store")
tensor = torch.full((2,), dist.get_rank() + 1.0)
dist.all_reduce(tensor)
print(tensor)
dist.destroy_process_group()
# [/program]

assert tensor.tolist() == [3.0, 3.0] and store_collectives.__doc__
