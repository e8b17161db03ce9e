"""Worker: print where this rank runs, and take one step with DDP."""

import os

import torch
import torch.distributed as dist
import torch.distributed.nn  # DDP imports it; see below why that is too late.
from torch import nn
from torch.nn.parallel import DistributedDataParallel

# [place]
names = ["GROUP_RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"]
names += ["RANK", "WORLD_SIZE"]
node, local_rank, local_world_size, rank, world_size = [
    int(os.environ[name]) for name in names
]
print(*[f"{name}={os.environ[name]}" for name in names])
assert rank == node * local_world_size + local_rank
# [/place]
assert world_size == int(os.environ["GROUP_WORLD_SIZE"]) * local_world_size

# [step]
dist.init_process_group("gloo")
model = nn.Linear(1, 1, bias=False)
nn.init.zeros_(model.weight)
replica = DistributedDataParallel(model)
optimizer = torch.optim.SGD(replica.parameters(), lr=1.0)

sample = rank + 1.0
loss = -replica(torch.tensor([[sample]])).sum()  # Its gradient is -sample.
loss.backward()
optimizer.step()
print(f"sample {sample:g}, weight after the step {model.weight.item()}")
# [/step]
assert (dist.get_rank(), dist.get_world_size()) == (rank, world_size)
assert model.weight.item() == sum(range(1, world_size + 1)) / world_size

# The threads of a group end with its last user. If they still run when Python ends,
# they may crash. DDP is a user, and so are the defaults of functions in a module that
# is imported while there is a group.
del replica
dist.destroy_process_group()
