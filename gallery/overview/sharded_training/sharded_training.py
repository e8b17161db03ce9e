"""Worker: count what each rank holds with DDP, with ZeRO's optimizer, and with FSDP2."""

import warnings

# PyTorch's own code for optimizers still uses what PyTorch has deprecated.
warnings.filterwarnings("ignore", "`torch.jit.* is deprecated", DeprecationWarning)

import torch
import torch.distributed as dist
import torch.distributed.nn  # See several_nodes/several_nodes.py.
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode


# [model]
def make_model():
    torch.manual_seed(0)  # The same parameters in every rank.
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))


def train(model, optimizer, inputs, targets, steps=3):
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
# [/model]


def shape_here(tensor):
    """Shape of the part of ``tensor`` that this rank holds."""
    return (tensor.to_local() if isinstance(tensor, DTensor) else tensor).shape


def elements_here(tensors):
    """Number of elements of ``tensors`` in the memory of this rank."""
    return sum(shape_here(tensor).numel() for tensor in tensors)


def elements_by_rank(model, adam):
    """Numbers of elements that each rank holds, by kind of tensor."""
    state = adam.state.values()
    here = {
        "parameters": elements_here(model.parameters()),
        "gradients": elements_here(p.grad for p in model.parameters()),
        "optimizer state": elements_here(s["exp_avg"] for s in state)
        + elements_here(s["exp_avg_sq"] for s in state),
    }
    everywhere = [None] * world_size
    dist.all_gather_object(everywhere, here)
    return {kind: [there[kind] for there in everywhere] for kind in here}


def is_same_everywhere(tensor):
    copies = [torch.empty_like(tensor) for _ in range(world_size)]
    dist.all_gather(copies, tensor)
    return all(torch.equal(copy, tensor) for copy in copies)


def show_elements(name, by_rank):
    if rank == 0:
        print(f"--- {name}")
        print(f"{'':15}", *(f"{f'rank {other}':>8}" for other in range(world_size)))
        for kind, counts in by_rank.items():
            print(f"{kind:15}", *(f"{count:8}" for count in counts))


def show_calls(name, model, optimizer, expected):
    """Print which methods of the backend one more step of training calls."""
    with profile(activities=[ProfilerActivity.CPU]) as recording:
        if optimizer:
            train(model, optimizer, inputs, targets, steps=1)
        else:
            nn.functional.mse_loss(model(inputs), targets).backward()
    calls = {
        event.key.removeprefix("c10d::").removesuffix("_"): event.count
        for event in recording.key_averages()
        if event.key.startswith("c10d::")
    }
    assert calls == expected, calls
    if rank == 0:
        print(f"{name:7}", ", ".join(f"{n} {call}" for call, n in sorted(calls.items())))


dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

torch.manual_seed(1)
all_inputs, all_targets = torch.randn(8, 16), torch.randn(8, 16)
inputs = all_inputs.chunk(world_size)[rank]
targets = all_targets.chunk(world_size)[rank]

# [ddp]
ddp = DistributedDataParallel(make_model())
ddp_adam = torch.optim.Adam(ddp.parameters(), lr=0.01)
train(ddp, ddp_adam, inputs, targets)
# [/ddp]

total = sum(parameter.numel() for parameter in ddp.parameters())
held = elements_by_rank(ddp, ddp_adam)
assert held["parameters"] == held["gradients"] == [total, total]
assert held["optimizer state"] == [2 * total, 2 * total]

for parameter in ddp.parameters():
    assert is_same_everywhere(parameter.detach())
    assert is_same_everywhere(parameter.grad)
    assert is_same_everywhere(ddp_adam.state[parameter]["exp_avg"])
    assert is_same_everywhere(ddp_adam.state[parameter]["exp_avg_sq"])
assert not is_same_everywhere(inputs)
show_elements("DDP", held)

# [zero]
zero = DistributedDataParallel(make_model())
zero_adam = ZeroRedundancyOptimizer(
    zero.parameters(), optimizer_class=torch.optim.Adam, lr=0.01
)
train(zero, zero_adam, inputs, targets)
# [/zero]

held = elements_by_rank(zero, zero_adam.optim)  # The Adam of this rank.
assert held["parameters"] == held["gradients"] == [total, total]
assert sum(held["optimizer state"]) == 2 * total
for part in held["optimizer state"]:
    assert 0.48 < part / (2 * total) < 0.52

for ours, theirs in zip(zero.parameters(), ddp.parameters(), strict=True):
    assert torch.equal(ours, theirs)
show_elements("ZeRO", held)


# [shard]
def shard(model, **options):
    mesh = init_device_mesh("cpu", (world_size,))
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


fsdp = shard(make_model())
fsdp_adam = torch.optim.Adam(fsdp.parameters(), lr=0.01)
# [/shard]

in_forward = []
fsdp[0].register_forward_pre_hook(
    lambda layer, _: in_forward.append(shape_here(layer.weight))
)
train(fsdp, fsdp_adam, inputs, targets)

held = elements_by_rank(fsdp, fsdp_adam)
assert held["parameters"] == held["gradients"] == [total / 2, total / 2]
assert held["optimizer state"] == [total, total]

between_steps = shape_here(fsdp[0].weight)
assert (between_steps, in_forward[0]) == ((32, 16), (64, 16))
show_elements("FSDP2", held)
if rank == 0:
    shapes = f"{list(between_steps)} between steps, {list(in_forward[0])} in forward"
    print(f"first weight: {shapes}")

# [alone]
alone = make_model()
adam = torch.optim.Adam(alone.parameters(), lr=0.01)
train(alone, adam, all_inputs, all_targets)

for ours, theirs in zip(fsdp.parameters(), alone.parameters(), strict=True):
    torch.testing.assert_close(ours.full_tensor(), theirs)
# [/alone]
for ours, theirs in zip(ddp.parameters(), alone.parameters(), strict=True):
    torch.testing.assert_close(ours, theirs)
for before, after in zip(make_model().parameters(), alone.parameters(), strict=True):
    assert not torch.allclose(before, after, atol=0.01), "training changed nothing"

kept = shard(make_model(), reshard_after_forward=False)
kept_adam = torch.optim.Adam(kept.parameters(), lr=0.01)

if rank == 0:
    print("--- calls")
show_calls("DDP", ddp, ddp_adam, {"allreduce": 1})
show_calls("ZeRO", zero, zero_adam, {"allreduce": 1, "broadcast": 4})
calls = {"_allgather_base": 4, "_reduce_scatter_base": 2}
show_calls("FSDP2", fsdp, fsdp_adam, calls)
calls = {"_allgather_base": 2, "_reduce_scatter_base": 2}
show_calls("kept", kept, kept_adam, calls)

fsdp.set_requires_gradient_sync(False)
show_calls("no sync", fsdp, None, {"_allgather_base": 4})
assert fsdp[0].weight.grad.to_local().shape == (32, 16), "of the step before"
fsdp.set_requires_gradient_sync(True)


class RecordTypes(TorchDispatchMode):
    """Record the type of the tensors of each collective."""

    def __init__(self):
        super().__init__()
        self.types = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "c10d":
            self.types[func._schema.name] = args[0].dtype
        return func(*args, **(kwargs or {}))


# [mixed]
def types_of_calls(**types):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, **types)
    model = shard(make_model(), mp_policy=policy)
    with RecordTypes() as recorded:
        train(model, torch.optim.Adam(model.parameters(), lr=0.01), inputs, targets)
    assert model[0].weight.dtype == model[0].weight.grad.dtype == torch.float32
    return recorded.types.values()
# [/mixed]


if rank == 0:
    print("--- types")
for reduce_dtype in (torch.float32, torch.bfloat16):
    gather, reduce = types_of_calls(reduce_dtype=reduce_dtype)
    if rank == 0:
        print(f"reduce_dtype {reduce_dtype}: all-gather {gather}, reduce-scatter {reduce}")
    assert (gather, reduce) == (torch.bfloat16, reduce_dtype)

# What the page says and does not show.
release = tuple(int(x) for x in torch.__version__.split(".")[:2])
reduced_by_default = torch.float32 if release >= (2, 15) else torch.bfloat16
assert list(types_of_calls()) == [torch.bfloat16, reduced_by_default]

# With the model alone, the other layer is whole, too, while one runs.
whole = fully_shard(make_model(), mesh=init_device_mesh("cpu", (world_size,)))
shapes = []
for model in (whole, fsdp):
    model[0].register_forward_pre_hook(
        lambda _, args, other=model[2]: shapes.append(shape_here(other.weight))
    )
whole(inputs)
fsdp(inputs)
assert shapes == [(16, 64), (8, 64)]

torch.manual_seed(rank)
unlike = nn.Linear(16, 64)
own_rows = unlike.weight.detach().chunk(world_size)[rank].clone()
fully_shard(unlike, mesh=init_device_mesh("cpu", (world_size,)))
assert torch.equal(unlike.weight.to_local(), own_rows)

with torch.device("meta"):
    empty = make_model()
shard(empty)
assert empty[0].weight.to_local().is_meta
empty.to_empty(device="cpu")
assert empty[0].weight.to_local().shape == (32, 16)
assert not empty[0].weight.to_local().is_meta

del ddp, zero, zero_adam  # See several_nodes/several_nodes.py.
dist.destroy_process_group()
