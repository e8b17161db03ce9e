"""Worker: run features of PyTorch, and record which c10d operations they call."""

import os
import warnings

# PyTorch's own code for optimizers still uses what PyTorch has deprecated.
warnings.filterwarnings("ignore", "`torch.jit.* is deprecated", DeprecationWarning)

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile


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
    sharded.redistribute(placements=[Replicate()])
    distribute_tensor(torch.ones(4, 4), mesh, [Replicate()])


def distributed_checkpoint():
    state = {"weight": torch.ones(2)}
    checkpoint.save(state, checkpoint_id=os.environ["SHARED_FOLDER"])
    checkpoint.load(state, checkpoint_id=os.environ["SHARED_FOLDER"])


def object_collectives():
    dist.all_gather_object([None] * world_size, "object")
    dist.broadcast_object_list(["object"])


def pipelining():
    stage = PipelineStage(nn.Linear(4, 4), rank, world_size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=nn.MSELoss())
    first, last = rank == 0, rank == world_size - 1
    batch = [torch.ones(4, 4)] if first else []
    schedule.step(*batch, target=torch.ones(4, 4) if last else None)


FEATURES = [ddp, zero, fsdp2, dtensor, distributed_checkpoint]
FEATURES += [object_collectives, pipelining]


# [record]
def record(feature):
    """The c10d operations that a feature calls, by the names of their methods."""
    with profile(activities=[ProfilerActivity.CPU]) as recording:
        feature()
    names = {event.key for event in recording.key_averages()}
    return {
        name.removeprefix("c10d::").removesuffix("_")
        for name in names
        if name.startswith("c10d::")
    }
# [/record]


dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (world_size,))

calls = {feature.__name__: record(feature) for feature in FEATURES}
operations = sorted(set().union(*calls.values()), key=lambda name: name.strip("_"))
for operation in operations:
    users = [feature for feature, called in calls.items() if operation in called]
    print(f"{operation:32} {', '.join(users)}")

assert calls["ddp"] >= {"allreduce", "allgather", "broadcast"}
assert calls["fsdp2"] == {"_allgather_base", "_reduce_scatter_base"}
assert calls["pipelining"] == {"send", "recv"}
dist.destroy_process_group()
