"""Worker: train with DDP while one rank has fewer batches than the other."""

import torch
import torch.distributed as dist
import torch.distributed.nn  # See several_nodes/several_nodes.py.
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()


# [join]
def train(batches, **options):
    """Return the gradient of each step, and the weight after the last one."""
    layer = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(layer.weight)
    replica = DistributedDataParallel(layer)
    optimizer = torch.optim.SGD(replica.parameters(), lr=1.0)
    gradients = []
    with replica.join(**options):
        for batch in batches:
            optimizer.zero_grad()
            replica(batch).sum().backward()
            optimizer.step()
            gradients.append(layer.weight.grad.item())
    return gradients, layer.weight.item()


batches = [torch.ones(1, 1)] * (4 if rank == 0 else 2)
gradients, weight = train(batches)
print(f"divided by 2 ranks: gradients {gradients}, weight {weight}")
gradients, weight = train(batches, divide_by_initial_world_size=False)
print(f"divided by those with data: gradients {gradients}, weight {weight}")
# [/join]
assert gradients == [1.0] * len(batches) and weight == -4.0

# What the page says and does not show.
try:
    train(batches, throw_on_early_termination=True)
except RuntimeError as error:
    assert "exhausted" in str(error), error
else:
    raise AssertionError("not all ranks noticed that one has no more data")
dist.destroy_process_group()
