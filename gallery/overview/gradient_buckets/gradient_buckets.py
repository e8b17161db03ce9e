"""Worker: record when gradients are ready, and when their all-reduce starts."""

import torch
import torch.distributed as dist
import torch.distributed.nn  # See several_nodes/several_nodes.py.
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

LAYERS, WIDTH = 4, 512  # The parameters of a layer take a little more than 1 MiB.
events = []


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])


# [record]
def record_gradients(model):
    for number, layer in enumerate(model, start=1):
        layer.weight.register_post_accumulate_grad_hook(
            lambda weight, number=number: events.append(f"gradient {number}")
        )


def record_buckets(group, bucket):
    events.append(f"all-reduce of bucket {bucket.index()}")
    return allreduce_hook(group, bucket)
# [/record]


def backward(model):
    torch.manual_seed(1 + dist.get_rank())  # Each rank has data of its own.
    events.clear()
    model.zero_grad()
    model(torch.rand(8, WIDTH)).square().mean().backward()
    return list(events)


def gradients(model):
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

# [ddp]
model = make_model()
record_gradients(model)
ddp = DistributedDataParallel(model, bucket_cap_mb=1)
ddp.register_comm_hook(None, record_buckets)
backward(ddp)  # DDP forms its buckets anew after the first backward pass.
order = backward(ddp)
# [/ddp]
if rank == 0:
    print("with DDP:", *order, sep="\n  ")
assert order.index("all-reduce of bucket 0") < order.index("gradient 1")
assert sum(event.startswith("all-reduce") for event in order) == LAYERS

# [by-hand]
model = make_model()
record_gradients(model)
order = backward(model)
for number, layer in enumerate(model, start=1):
    for parameter in layer.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world_size
    order.append(f"all-reduce of layer {number}")
# [/by-hand]
if rank == 0:
    print("by hand:", *order, sep="\n  ")
    same = torch.allclose(gradients(model), gradients(ddp), atol=1e-7)
    print("same gradients:", same)
assert torch.allclose(gradients(model), gradients(ddp), atol=1e-7)
assert gradients(ddp).abs().max() > 1e-5  # The comparison is not one of zeros.


# [parameters]
def average_parameters(optimizer_class):
    """Train without DDP, and average the parameters after every step."""
    model = make_model()
    optimizer = optimizer_class(model.parameters(), lr=0.01)
    for _ in range(3):
        backward(model)
        optimizer.step()
        for parameter in model.parameters():
            dist.all_reduce(parameter.data)
            parameter.data /= world_size
    return model
# [/parameters]


def average_gradients(optimizer_class):
    model = make_model()
    ddp = DistributedDataParallel(model)
    optimizer = optimizer_class(model.parameters(), lr=0.01)
    for _ in range(3):
        backward(ddp)
        optimizer.step()
    return model


def difference(one, other):
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


for optimizer_class in (torch.optim.SGD, torch.optim.Adam):
    averaged = average_parameters(optimizer_class)
    same = difference(averaged, average_gradients(optimizer_class)) < 1e-6
    if rank == 0:
        print(f"{optimizer_class.__name__}: averaged parameters as with DDP: {same}")
    assert same == (optimizer_class is torch.optim.SGD)
del ddp  # See several_nodes/several_nodes.py.
dist.destroy_process_group()
