"""Worker: split the matrices of a two-layer model among the ranks."""

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


# [model]
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 16)
        self.down = nn.Linear(16, 4)

    def forward(self, x):
        return x + self.down(self.up(x).relu())
# [/model]


dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

torch.manual_seed(0)
inputs = torch.randn(6, 4)

# [split]
whole = Block()
split = copy.deepcopy(whole)

mesh = init_device_mesh("cpu", (world_size,))
plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
parallelize_module(split, mesh, plan)
# [/split]

shapes = {}
for name, parameter in split.named_parameters():
    shapes[name] = list(parameter.to_local().shape)
    if rank == 0:
        print(f"{name:11} {str(list(parameter.shape)):8} here {shapes[name]}")
assert shapes["up.weight"] == [8, 4] and shapes["up.bias"] == [8]
assert shapes["down.weight"] == [4, 8] and shapes["down.bias"] == [4]
torch.testing.assert_close(
    split.up.weight.to_local(), whole.up.weight.chunk(world_size)[rank]
)

between = []
hook = split.down.register_forward_pre_hook(lambda _, args: between.append(args[0]))


def calls(counted):
    operations = counted.get_comm_counts().items()
    return ", ".join(f"{count} {str(op).split('.')[-1]}" for op, count in operations)


# [compare]
ours = inputs.clone().requires_grad_()
with CommDebugMode() as forward:
    output = split(ours)
with CommDebugMode() as backward:
    output.square().sum().backward()

theirs = inputs.clone().requires_grad_()
expected = whole(theirs)
expected.square().sum().backward()

torch.testing.assert_close(output, expected)
torch.testing.assert_close(ours.grad, theirs.grad)
for mine, other in zip(split.parameters(), whole.parameters(), strict=True):
    torch.testing.assert_close(mine.grad.full_tensor(), other.grad)
assert forward.get_total_counts() == backward.get_total_counts() == 1
# [/compare]
assert calls(forward) == calls(backward) == "1 all_reduce"
hook.remove()
[hidden] = between
assert hidden.to_local().shape == (6, 8)
if rank == 0:
    print(f"between the layers [6, 16] here {list(hidden.to_local().shape)}")
    print(f"forward: {calls(forward)}, backward: {calls(backward)}")

# [mesh]
mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("data", "tensor"))
model = parallelize_module(copy.deepcopy(whole), mesh["tensor"], plan)
fully_shard(model, mesh=mesh["data"])
# [/mesh]
output = model(inputs)
output.square().sum().backward()
torch.testing.assert_close(output, expected)
for mine, other in zip(model.parameters(), split.parameters(), strict=True):
    torch.testing.assert_close(mine.grad.to_local(), other.grad.to_local())
assert (mesh["data"].size(), mesh["tensor"].size()) == (1, 2)

dist.destroy_process_group()
