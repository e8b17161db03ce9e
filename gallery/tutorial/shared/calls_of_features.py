"""Worker: record which c10d operations the features of PyTorch call."""

import json
import os
import warnings
from contextlib import nullcontext

# PyTorch's own code for optimizers still uses what PyTorch has deprecated.
warnings.filterwarnings("ignore", "`torch.jit.* is deprecated", DeprecationWarning)

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode


def train(model, optimizer=None):
    model(torch.ones(2, 4)).sum().backward()
    if optimizer:
        optimizer.step()


def ddp():
    train(DistributedDataParallel(nn.Linear(4, 4)))


def zero():
    model = DistributedDataParallel(nn.Linear(4, 4))
    sgd = torch.optim.SGD
    train(model, ZeroRedundancyOptimizer(model.parameters(), sgd, lr=0.1))


def fsdp2():
    train(fully_shard(nn.Linear(4, 4), mesh=mesh))


def dtensor():
    sharded = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
    sharded.redistribute(placements=[Replicate()]).to_local()
    distribute_tensor(torch.ones(4, 4), mesh, [Replicate()])
    summands = DTensor.from_local(torch.ones(4, 4), mesh, [Partial()])
    summands.redistribute(placements=[Shard(0)]).to_local()
    summands.redistribute(placements=[Replicate()]).to_local()


def distributed_checkpoint():
    state = {"weight": torch.ones(2)}
    checkpoint.save(state, checkpoint_id=os.environ["SHARED_FOLDER"])
    checkpoint.load(state, checkpoint_id=os.environ["SHARED_FOLDER"])


def object_collectives():
    everyones, received = [None] * world_size, [None]
    dist.all_gather_object(everyones, "object")
    dist.gather_object("object", everyones if rank == 0 else None)
    dist.broadcast_object_list(["object"])
    dist.scatter_object_list(received, ["object"] * world_size)
    if rank == 0:
        dist.send_object_list(["object"], dst=1)
    elif rank == 1:
        dist.recv_object_list(received, src=0)


def pipelining():
    stage = PipelineStage(nn.Linear(4, 4), rank, world_size, device)
    schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=nn.L1Loss())
    first, last = rank == 0, rank == world_size - 1
    batch = [torch.ones(4, 4)] if first else []
    schedule.step(*batch, target=torch.ones(4, 4) if last else None)


def fsdp1():
    train(FullyShardedDataParallel(nn.Linear(4, 4), device_id=device))


def hsdp():
    names = ("replicate", "shard")
    replicate_and_shard = init_device_mesh(device.type, (world_size, 1), mesh_dim_names=names)
    train(fully_shard(nn.Linear(4, 4), mesh=replicate_and_shard))


def tensor_parallelism():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    plan = {"0": ColwiseParallel(), "1": RowwiseParallel()}
    train(parallelize_module(model, mesh, plan))


def uneven_inputs():
    model = DistributedDataParallel(nn.Linear(4, 4))
    with Join([model]):
        for _ in range(1 + rank):
            train(model)


# [calls]
def clip_gradients():
    model = fully_shard(nn.Linear(4, 4), mesh=mesh)
    train(model)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0).to_local()


def compare_tensors():
    sharded = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
    torch.equal(sharded, sharded)


def shard_the_loss():
    scores = distribute_tensor(torch.ones(4, 4), mesh, [Shard(1)])
    with loss_parallel():
        nn.functional.cross_entropy(scores, torch.zeros(4, dtype=torch.int64))


def coalesce_calls():
    with dist._coalescing_manager():
        dist.all_reduce(torch.ones(2))
        dist.all_reduce(torch.ones(2))


def exchange_parts():
    dist.all_to_all_single(torch.ones(2), torch.ones(2))


def receive_from_any_rank():
    if rank == 0:
        dist.recv(torch.ones(2))
    else:
        dist.send(torch.ones(2), dst=0)


def shard_another_dimension():
    sharded = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
    sharded.redistribute(placements=[Shard(1)]).to_local()


def make_a_mesh():
    init_device_mesh(device.type, (1, world_size), mesh_dim_names=("replicate", "shard"))


# [/calls]
CALLS = [clip_gradients, compare_tensors, shard_the_loss]
CALLS += [coalesce_calls, exchange_parts, receive_from_any_rank]
CALLS += [shard_another_dimension, make_a_mesh]


FEATURES = {
    "DDP": ddp,
    "ZeRO": zero,
    "FSDP2": fsdp2,
    "DTensor": dtensor,
    "DCP": distributed_checkpoint,
    "objects": object_collectives,
    "pipelining": pipelining,
}
if "MORE_FEATURES" in os.environ:
    FEATURES |= {
        "Join": uneven_inputs,
        "FSDP1": fsdp1,
        "HSDP": hsdp,
        "clip_grad_norm_": clip_gradients,
        "TP": tensor_parallelism,
    }


# [reductions]
class Reductions(TorchDispatchMode):
    """The ReduceOps of all collectives, which the dispatcher passes on as an argument."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if DTensor in types:
            return NotImplemented  # DTensor's own code calls collectives on plain tensors.
        for parameter, value in zip(function._schema.arguments, arguments):
            if parameter.name == "reduce_op":
                self.names.add(value.upper() if isinstance(value, str) else name_of(value))
        return function(*arguments, **(options or {}))


def name_of(boxed):
    op = dist.ReduceOp.unbox(boxed)
    return next(x for x in dist.ReduceOp.RedOpType.__members__ if op == getattr(dist.ReduceOp, x))


# [/reductions]


# [others]
# Methods without an event. Programs and PyTorch's own code call them by these names.
noted = set()


def also_note(name, method):
    call = getattr(dist.ProcessGroup, name)

    def noting(*arguments, **options):
        noted.add(method)
        return call(*arguments, **options)

    setattr(dist.ProcessGroup, name, noting)


also_note("split_group", "split")
also_note("_start_coalescing", "startCoalescing")
also_note("_end_coalescing", "endCoalescing")
# [/others]


# [record]
def record(feature):
    """The names of the methods of c10d that a feature calls, and of its ReduceOps."""
    readable = hasattr(dist.ReduceOp, "unbox")  # since PyTorch 2.15
    reductions = Reductions() if readable else nullcontext()
    noted.clear()
    with profile(activities=[ProfilerActivity.CPU]) as recording, reductions:
        feature()
    names = {event.key for event in recording.key_averages()}
    ops = {f"ReduceOp.{name}" for name in reductions.names} if readable else set()
    methods = {
        name.removeprefix("c10d::").removesuffix("_").replace("_any_source", "Anysource")
        for name in names
        if name.startswith("c10d::")
    }
    return sorted(ops) + sorted(methods | noted)


# [/record]


rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("cpu")
if "ON_ACCELERATOR" in os.environ:
    import stream_collectives  # noqa: F401

    device = torch.device("sim", rank)
    torch.set_default_device(device)
    torch.accelerator.set_device_index(rank)
    dist.init_process_group("simccl", device_id=device)
else:
    dist.init_process_group("gloo")
mesh = init_device_mesh(device.type, (world_size,))

calls = {name: record(feature) for name, feature in FEATURES.items()}
if "MORE_CALLS" in os.environ:
    calls |= {call.__name__: record(call) for call in CALLS}
print(json.dumps(calls))

assert {"allreduce", "allgather", "broadcast"} <= set(calls["DDP"])
assert calls["FSDP2"][-2:] == ["_allgather_base", "_reduce_scatter_base"]
assert {"recv", "send"} <= set(calls["pipelining"])
dist.destroy_process_group()
