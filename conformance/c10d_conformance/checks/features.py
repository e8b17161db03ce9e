"""What PyTorch builds on a backend: every way of training in parallel gives the right numbers.

Each check compares with the same computation by one process. Features import what they need when
they run: PyTorch may be built without them.
"""

import os
import warnings
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from c10d_conformance.operations import total
from c10d_conformance.rank import Rank, Wrong, require, require_equal
from c10d_conformance.registry import check

TWO: dict[str, Any] = {"ranks": (2,), "patience": 6}


def model(width: int = 16, seed: int = 0) -> nn.Sequential:
    """Return a small network, the same on every rank."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 4))


def batch(rank: int, step: int = 0) -> torch.Tensor:
    """Return the inputs of a rank."""
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(6, 8, generator=generator)


def whole(size: int, step: int = 0) -> torch.Tensor:
    """Return the inputs of all ranks."""
    return torch.cat([batch(rank, step) for rank in range(size)])


def near(got: Any, expected: Any, what: str, tolerance: float = 1e-5) -> None:
    """Raise Wrong unless two tensors are equal up to the rounding of float32, or the tolerance."""
    got, expected = got.detach().cpu(), expected.detach().cpu()
    difference = (got - expected).abs().max() if got.numel() else torch.zeros(())
    if not difference <= tolerance * (1 + expected.abs().max()):
        place = int((got - expected).abs().flatten().argmax())
        raise Wrong(
            f"{what}: element {place}: expected {float(expected.flatten()[place]):.6f}, "
            f"got {float(got.flatten()[place]):.6f}"
        )


def train_alone(
    size: int, steps: int = 3, optimizer: Any = torch.optim.SGD, rate: float = 0.1
) -> nn.Module:
    """Return the model after training by one process with the inputs of all ranks."""
    single = model()
    stepper = optimizer(single.parameters(), lr=rate)
    for step in range(steps):
        stepper.zero_grad()
        single(whole(size, step)).square().mean().backward()
        stepper.step()
    return single


def train(parallel: Any, rank: Rank, stepper: Any, steps: int = 3) -> None:
    """Train a parallel model with the inputs of this rank."""
    for step in range(steps):
        stepper.zero_grad()
        parallel(batch(rank.rank, step).to(rank.device)).square().mean().backward()
        stepper.step()


def same_model(got: Any, expected: Any) -> None:
    """Compare all parameters."""
    for (name, one), other in zip(got.named_parameters(), expected.parameters(), strict=True):
        near(one, other, f"parameter {name.removeprefix('module.')} after training")


def backward(parallel: Any, rank: Rank) -> None:
    """Compute the gradients of a parallel model for the inputs of this rank."""
    parallel(batch(rank.rank).to(rank.device)).square().mean().backward()


def same_gradients(got: Any, size: int, width: int = 16, tolerance: float = 1e-5) -> None:
    """Compare all gradients with those of one process for the inputs of all ranks."""
    single = model(width)
    single(whole(size)).square().mean().backward()
    for (name, one), other in zip(got.named_parameters(), single.parameters(), strict=True):
        near(one.grad, other.grad, f"gradient of {name.removeprefix('module.')}", tolerance)


def ddp(rank: Rank, module: nn.Module, **options: Any) -> Any:
    return nn.parallel.DistributedDataParallel(module.to(rank.device), **options)


@check(
    "ddp",
    "DDP trains as one process does with the inputs of all ranks.",
    "torch.nn.parallel.DistributedDataParallel",
    quick=True,
    **TWO,
)
def ddp_trains(rank: Rank) -> None:
    parallel = ddp(rank, model())
    train(parallel, rank, torch.optim.SGD(parallel.parameters(), lr=0.1))
    same_model(parallel, train_alone(rank.size))


@check(
    "ddp",
    "DDP with small buckets and a view for each gradient has the same gradients.",
    "torch.nn.parallel.DistributedDataParallel (bucket_cap_mb, gradient_as_bucket_view)",
    **TWO,
)
def ddp_buckets(rank: Rank) -> None:
    options = {"bucket_cap_mb": 0.0001, "gradient_as_bucket_view": True}
    parallel = ddp(rank, model(64), **options)
    for _ in range(2):
        parallel.zero_grad()
        backward(parallel, rank)
    same_gradients(parallel, rank.size, 64)


@check(
    "ddp",
    "DDP finds parameters that no rank, or only one rank, has used.",
    "torch.nn.parallel.DistributedDataParallel (find_unused_parameters)",
    **TWO,
)
def ddp_unused(rank: Rank) -> None:
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.parts = nn.ModuleList([nn.Linear(8, 1) for _ in range(3)])

        def forward(self, number, inputs):
            return self.parts[number](inputs)

    parallel = ddp(rank, Branches(), find_unused_parameters=True)
    parallel(rank.rank % 2, batch(rank.rank).to(rank.device)).mean().backward()
    single = Branches()
    sum(single(r % 2, batch(r)).mean() / rank.size for r in range(rank.size)).backward()
    for number in range(2):
        weight = parallel.module.parts[number].weight
        near(weight.grad, single.parts[number].weight.grad, f"gradient of part {number}")
    unused = parallel.module.parts[2].weight.grad
    require(unused is None or not unused.any(), "the part that nobody used has a gradient")


@check(
    "ddp",
    "DDP sends the buffers and parameters of rank 0 to all ranks.",
    "torch.nn.parallel.DistributedDataParallel (broadcast_buffers)",
    **TWO,
)
def ddp_starts_alike(rank: Rank) -> None:
    norm = nn.BatchNorm1d(4)
    norm.running_mean = torch.full((4,), float(rank.rank))
    parallel = ddp(rank, nn.Sequential(model(seed=rank.rank), norm))
    same_model(parallel.module[0], model(seed=0))
    near(parallel.module[1].running_mean, torch.zeros(4), "the buffer of rank 0")


@check(
    "ddp",
    "DDP's join lets ranks have different numbers of inputs.",
    "torch.distributed.algorithms.Join",
    **TWO,
)
def ddp_join(rank: Rank) -> None:
    parallel = ddp(rank, model())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with parallel.join():
            for step in range(2 + rank.rank):
                parallel(batch(rank.rank, step).to(rank.device)).mean().backward()
    total(rank)


@check(
    "ddp",
    "Communication hooks of DDP give the gradients that they promise.",
    "torch.nn.parallel.DistributedDataParallel.register_comm_hook",
    cases=lambda rank: [(f"hook {name}", name) for name in ("all_reduce", "own", "fp16")],
    **TWO,
)
def ddp_hooks(rank: Rank, name: str) -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    rank.operation = "all_reduce"

    def own(_, bucket):
        work = dist.all_reduce(bucket.buffer().div_(rank.size), async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    hooks = {
        "all_reduce": default_hooks.allreduce_hook,
        "fp16": default_hooks.fp16_compress_hook,
        "own": own,
    }
    parallel = ddp(rank, model())
    parallel.register_comm_hook(None, hooks[name])
    backward(parallel, rank)
    same_gradients(parallel, rank.size, tolerance=5e-3 if name == "fp16" else 1e-5)


@check(
    "ddp",
    "SyncBatchNorm and model averaging use the statistics of all ranks.",
    "torch.distributed.algorithms.model_averaging",
    **TWO,
)
def averaging(rank: Rank) -> None:
    from torch.distributed.algorithms.model_averaging import utils

    module = model(seed=rank.rank).to(rank.device)
    utils.average_parameters(module.parameters(), rank.world)
    models = [model(seed=r) for r in range(rank.size)]
    for got, *others in zip(module.parameters(), *[m.parameters() for m in models], strict=True):
        near(got, sum(others) / rank.size, "the mean of a parameter")


@check(
    "zero",
    "ZeroRedundancyOptimizer steps as its optimizer does in one process.",
    "torch.distributed.optim.ZeroRedundancyOptimizer",
    quick=True,
    **TWO,
)
def zero(rank: Rank) -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    parallel = ddp(rank, model())
    stepper = ZeroRedundancyOptimizer(parallel.parameters(), torch.optim.Adam, lr=0.01)
    train(parallel, rank, stepper)
    same_model(parallel, train_alone(rank.size, optimizer=torch.optim.Adam, rate=0.01))


@check(
    "fsdp1",
    "FullyShardedDataParallel trains as one process does.",
    "torch.distributed.fsdp.FullyShardedDataParallel",
    quick=True,
    **TWO,
)
def fsdp1(rank: Rank) -> None:
    from torch.distributed.fsdp import FullyShardedDataParallel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parallel = FullyShardedDataParallel(
            model().to(rank.device), device_id=rank.device, use_orig_params=True
        )
        train(parallel, rank, torch.optim.SGD(parallel.parameters(), lr=0.1))
        with FullyShardedDataParallel.summon_full_params(parallel):
            same_model(parallel, train_alone(rank.size))


@check(
    "fsdp2",
    "fully_shard trains as one process does.",
    "torch.distributed.fsdp.fully_shard",
    quick=True,
    **TWO,
)
def fsdp2(rank: Rank) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(rank.device.type, (rank.size,))
    module: Any = model().to(rank.device)
    for layer in (module[0], module[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(module, mesh=mesh)
    train(module, rank, torch.optim.SGD(module.parameters(), lr=0.1))
    single = train_alone(rank.size)
    for (name, got), want in zip(module.named_parameters(), single.parameters(), strict=True):
        near(got.full_tensor(), want, f"parameter {name} after training")
    norm: Any = nn.utils.clip_grad_norm_(module.parameters(), 1e9)
    require(torch.isfinite(norm.full_tensor()).item(), "the norm of the gradients is not finite")


@check(
    "dtensor",
    "A DTensor keeps its values when it is distributed in another way.",
    "torch.distributed.tensor.distribute_tensor, DTensor.redistribute",
    quick=True,
    cases=True,
    **TWO,
)
def dtensor(rank: Rank) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Partial, Replicate, Shard

    mesh = init_device_mesh(rank.device.type, (rank.size,))
    ways = [Shard(0), Shard(1), Replicate()]
    for source in ways:
        for target in ways:
            rank.case(f"{source} to {target}", _redistribute, rank, mesh, source, target)
    for target in ways:
        rank.case(f"{Partial()} to {target}", _partial, rank, mesh, target)


def _redistribute(rank: Rank, mesh: Any, source: Any, target: Any) -> None:
    from torch.distributed.tensor import distribute_tensor

    content = torch.arange(35.0, device=rank.device).reshape(7, 5)
    there = distribute_tensor(content.clone(), mesh, [source]).redistribute(placements=[target])
    near(there.full_tensor(), content, f"{source} to {target}")


def _partial(rank: Rank, mesh: Any, target: Any) -> None:
    from torch.distributed.tensor import DTensor, Partial

    content = torch.arange(24.0, device=rank.device).reshape(6, 4)
    partial = DTensor.from_local(content * (rank.rank + 1), mesh, [Partial()])
    got = partial.redistribute(placements=[target]).full_tensor()
    near(got, content * sum(range(1, rank.size + 1)), f"Partial to {target}")


@check(
    "dtensor",
    "Tensor parallelism gives the outputs and gradients of one process.",
    "torch.distributed.tensor.parallel.parallelize_module",
    **TWO,
)
def tensor_parallel(rank: Rank) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh(rank.device.type, (rank.size,))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    parallel: Any = parallelize_module(model().to(rank.device), mesh, plan)
    single = model()
    output, expected = parallel(batch(0).to(rank.device)), single(batch(0))
    near(output, expected, "the output")
    output.square().mean().backward()
    expected.square().mean().backward()
    for (name, got), want in zip(parallel.named_parameters(), single.parameters(), strict=True):
        near(got.grad.full_tensor(), want.grad, f"gradient of {name}")


@check(
    "pipeline",
    "A pipeline of stages gives the outputs and gradients of one process.",
    "torch.distributed.pipelining",
    quick=True,
    cases=lambda rank: [(name, name) for name in ("ScheduleGPipe", "Schedule1F1B")],
    **TWO,
)
def pipeline(rank: Rank, name: str) -> None:
    from torch.distributed import pipelining

    layers = model()
    part = nn.Sequential(*(layers[:1] if rank.rank == 0 else layers[1:])).to(rank.device)
    stage = pipelining.PipelineStage(part, rank.rank, rank.size, rank.device)

    def loss(output, target):
        return (output - target).square().mean()

    schedule = getattr(pipelining, name)(stage, n_microbatches=2, loss_fn=loss)
    inputs, target = whole(2), torch.ones(12, 4)
    single = model()
    expected = single(inputs)
    loss(expected, target).backward()
    if rank.rank == 0:
        schedule.step(inputs.to(rank.device))
        near(part[0].weight.grad, single[0].weight.grad, "gradient of the first stage")
    else:
        output = schedule.step(target=target.to(rank.device))
        near(output, expected, "the output of the last stage")
        near(part[1].weight.grad, single[2].weight.grad, "gradient of the last stage")


@check(
    "checkpoint",
    "A distributed checkpoint is read as it was written.",
    "torch.distributed.checkpoint",
    quick=True,
    **TWO,
)
def checkpoint(rank: Rank) -> None:
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh(rank.device.type, (rank.size,))
    content = torch.arange(40.0, device=rank.device).reshape(8, 5)
    folder = os.path.join(rank.folder, "checkpoint")
    state = {"sharded": distribute_tensor(content.clone(), mesh, [Shard(0)]), "number": 7}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(state, checkpoint_id=folder)
        zeros = torch.zeros_like(content)
        read: dict[str, Any] = {
            "sharded": distribute_tensor(zeros, mesh, [Replicate()]),
            "number": 0,
        }
        dcp.load(read, checkpoint_id=folder)
    near(read["sharded"].full_tensor(), content, "the tensor that was read")
    require_equal(read["number"], 7, "the number that was read")


@check(
    "functional",
    "Functional collectives return new tensors and leave their inputs alone.",
    "torch.distributed._functional_collectives",
    quick=True,
    cases=lambda rank: [
        (f"functional {name}", name)
        for name in (
            "all_reduce",
            "all_gather_tensor",
            "reduce_scatter_tensor",
            "broadcast",
            "all_to_all_single",
            "all_reduce_coalesced",
        )
    ],
    **TWO,
)
def functional(rank: Rank, name: str) -> None:
    import torch.distributed._functional_collectives as functions

    rank.operation = name
    group, size = rank.world, rank.size
    own = torch.arange(4.0 * size, device=rank.device) + 100 * rank.rank
    everyone = [torch.arange(4.0 * size) + 100 * r for r in range(size)]
    total, before = torch.stack(everyone).sum(0), own.clone()
    if name == "all_reduce":
        got, want = functions.all_reduce(own, "sum", group), total
    elif name == "all_gather_tensor":
        got, want = functions.all_gather_tensor(own, 0, group), torch.cat(everyone)
    elif name == "reduce_scatter_tensor":
        got = functions.reduce_scatter_tensor(own, "sum", 0, group)
        want = total.chunk(size)[rank.rank]
    elif name == "broadcast":
        got, want = functions.broadcast(own, size - 1, group), everyone[-1]
    elif name == "all_to_all_single":
        got = functions.all_to_all_single(own, None, None, group)
        want = torch.cat([other.chunk(size)[rank.rank] for other in everyone])
    else:
        got, second = functions.all_reduce_coalesced([own, own * 2], "sum", group)
        want = total
        near(second, want * 2, "the second result")
    near(got, want, "the result")
    near(own, before, "the input")


@check(
    "functional",
    "torch.compile keeps the results of a function with collectives.",
    "torch.compile",
    **TWO,
)
def compiled(rank: Rank) -> None:
    def function(tensor):
        copied = tensor * 2
        dist.all_reduce(copied)
        return copied + 1

    # This backend of torch.compile traces the collectives, and needs no compiler of C++.
    fast = torch.compile(function, backend="aot_eager", fullgraph=True)
    own = rank.full(6, float(rank.rank + 1))
    near(fast(own), torch.full((6,), float(rank.size * (rank.size + 1) + 1)), "the result")
    near(own, torch.full((6,), float(rank.rank + 1)), "the input")


@check("functional", "DDP trains under torch.compile as it does without.", "torch.compile", **TWO)
def compiled_ddp(rank: Rank) -> None:
    parallel = ddp(rank, model())
    fast = torch.compile(parallel, backend="aot_eager")
    backward(fast, rank)
    same_gradients(parallel, rank.size)
