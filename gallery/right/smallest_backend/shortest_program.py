"""Worker: the shortest program that uses the backend "store"."""

# [program]
import torch
import torch.distributed as dist

import store_collectives

dist.init_process_group("store")
tensor = torch.ones(2)
dist.all_reduce(tensor)
print(tensor)
dist.destroy_process_group()
# [/program]

assert tensor.tolist() == [2.0, 2.0] and store_collectives.__doc__
