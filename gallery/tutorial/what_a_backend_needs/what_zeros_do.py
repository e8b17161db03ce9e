"""Worker: features of PyTorch on a backend whose results are all zeros."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import dummy_collectives  # importing it registers "dummy"

dist.init_process_group("dummy")
rank, world_size = dist.get_rank(), dist.get_world_size()

failures = []
try:
    DistributedDataParallel(nn.Linear(2, 2))
except RuntimeError as error:
    print("DDP:", error)
    failures.append(str(error))

try:
    dist.all_gather_object([None] * world_size, "object")
except (EOFError, RuntimeError) as error:
    print("all_gather_object:", error)
    failures.append(str(error))

assert len(failures) == 2, "nothing failed"
assert "2 params" in failures[0] and "0 params" in failures[0]

# Averaging by hand needs only all-reduce. It runs without an error and ruins the model.
model = nn.Linear(2, 2)
model(torch.ones(1, 2)).sum().backward()
for parameter in model.parameters():
    dist.all_reduce(parameter.grad)
    parameter.grad /= world_size
print("gradients averaged by hand:", model.weight.grad.tolist())
assert model.weight.grad.eq(0).all()

dist.destroy_process_group()
