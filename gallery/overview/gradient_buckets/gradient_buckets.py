"""Worker: record when gradients are ready, and when their all-reduce starts."""

import torch
import torch.distributed as dist
import torch.distributed.nn  # See several_nodes/several_nodes.py.
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.tensor.debug import CommDebugMode
from torch.nn.parallel import DistributedDataParallel

from branches import Branches

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


def show(name, *lines):
    if rank == 0:
        print(f"--- {name}", *lines, sep="\n")


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
show("DDP", *order)
assert order.index("all-reduce of bucket 0") < order.index("gradient 1")
assert sum(event.startswith("all-reduce") for event in order) == LAYERS


# [sizes]
def count_with_limit(bucket_cap_mb):
    """All-reduces in a backward pass, and gradients missing when the first one starts."""
    model = make_model()
    record_gradients(model)
    limited = DistributedDataParallel(model, bucket_cap_mb=bucket_cap_mb)
    limited.register_comm_hook(None, record_buckets)
    backward(limited)
    order = backward(limited)
    return len(order) - LAYERS, LAYERS - order.index("all-reduce of bucket 0")
# [/sizes]


counts = {limit: count_with_limit(limit) for limit in (1, 2, 25, None)}
table = [f"{limit or 'default':>7} {n:11} {late:7}" for limit, (n, late) in counts.items()]
show("sizes", "  limit all-reduces missing", *table)
assert counts == {1: (4, 3), 2: (2, 2), 25: (1, 0), None: (2, 3)}

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
same = torch.allclose(gradients(model), gradients(ddp), atol=1e-7)
show("by hand", *order, f"same gradients as with DDP: {same}")
assert same
assert gradients(ddp).abs().max() > 1e-5  # The comparison is not one of zeros.

# [unused]
def two_steps(**options):
    """Return what the second step calls, or its error."""
    branches = DistributedDataParallel(Branches(), **options)
    branches(torch.ones(1, 4)).sum().backward()
    try:
        with CommDebugMode() as counter:
            branches(torch.ones(1, 4)).sum().backward()
    except RuntimeError as error:
        return str(error)
    return f"{counter.get_total_counts()} all-reduces"
# [/unused]


error, calls = two_steps(), two_steps(find_unused_parameters=True)
show("unused", f"error: {error.partition('.')[0]}", f"find_unused_parameters: {calls}")
assert error.startswith("Expected to have finished reduction in the prior iteration")
assert "Parameter indices which did not receive grad for rank" in error, error
assert calls == "2 all-reduces"
searching = DistributedDataParallel(Branches(), find_unused_parameters=True)
searching(torch.ones(1, 4)).sum().backward()
assert searching.module.left_out.weight.grad is None, "no rank has used it"

batches = torch.rand(4, 8, WIDTH)


def all_reduces(train):
    """Number of all-reduces when DDP adds up the gradients of all batches."""
    events.clear()
    ddp.zero_grad()
    train()
    return sum(event.startswith("all-reduce") for event in events)


# [accumulate]
def reduce_each():
    for batch in batches:
        ddp(batch).square().mean().backward()


def reduce_once():
    with ddp.no_sync():
        for batch in batches[:-1]:
            ddp(batch).square().mean().backward()
    ddp(batches[-1]).square().mean().backward()


def forward_outside():
    for batch in batches[:-1]:
        loss = ddp(batch).square().mean()
        with ddp.no_sync():
            loss.backward()
    ddp(batches[-1]).square().mean().backward()
# [/accumulate]


count = all_reduces(reduce_each)
each = gradients(ddp)
lines = [f"reduce_each: {count} all-reduces"]
assert count == 16
count = all_reduces(reduce_once)
same = torch.allclose(gradients(ddp), each, atol=1e-7)
lines += [f"reduce_once: {count} all-reduces, same gradients: {same}"]
assert (count, same) == (4, True)
count = all_reduces(forward_outside)
lines += [f"forward_outside: {count} all-reduces"]
show("accumulate", *lines)


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


lines = []
for optimizer_class in (torch.optim.SGD, torch.optim.Adam):
    averaged = average_parameters(optimizer_class)
    same = difference(averaged, average_gradients(optimizer_class)) < 1e-6
    lines.append(f"{optimizer_class.__name__}: averaged parameters as with DDP: {same}")
    assert same == (optimizer_class is torch.optim.SGD)
show("parameters", *lines)
ddp = searching = None  # See several_nodes/several_nodes.py.
dist.destroy_process_group()
