"""Worker: train in several ways on sim with simccl, and on the CPU with gloo."""

import json
import os
import shutil
import tempfile
import warnings

# PyTorch's own code for optimizers still uses what PyTorch has deprecated.
warnings.filterwarnings("ignore", "`torch.jit.* is deprecated", DeprecationWarning)

import stream_collectives  # noqa: F401
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["RANK"])
CPU, SIM = torch.device("cpu"), torch.device("sim", rank)


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh())


def batch(device, seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(4, n, generator=generator).to(device) for n in (8, 16)]


def losses_of(model, device, same_data=False, autocast=False):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    inputs, targets = batch(device, seed=0 if same_data else rank)
    losses = []
    for _ in range(10):
        with torch.autocast(device.type, torch.bfloat16, enabled=autocast):
            loss = (model(inputs) - targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert loss.device == device
    return losses


# [ways]
def ddp(device, **options):
    model = DistributedDataParallel(make_model().to(device), bucket_cap_mb=0.001)
    return losses_of(model, device, **options)


def compiled_ddp(device):
    model = DistributedDataParallel(make_model().to(device))
    return losses_of(torch.compile(model, backend="aot_eager"), device)


def ddp_with_autocast(device):
    return ddp(device, autocast=True)


def sharded(device, shape=(2,), names=("shards",)):
    mesh = init_device_mesh(device.type, shape, mesh_dim_names=names)
    model = make_model().to(device)
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    return model


def fsdp2(device):
    return losses_of(sharded(device), device)


def hsdp(device):
    return losses_of(sharded(device, (2, 1), ("copies", "shards")), device)


def tensor_parallel(device):
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    mesh = init_device_mesh(device.type, (2,))
    model = parallelize_module(make_model().to(device), mesh, plan)
    return losses_of(model, device, same_data=True)


def pipeline(device):
    part = make_model()[2 * rank : 2 * rank + 2].to(device)
    stage = PipelineStage(part, rank, 2, device)
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=nn.L1Loss())
    losses = []
    inputs, targets = batch(device, seed=0)
    if rank == 0:
        schedule.step(inputs)
    else:
        schedule.step(target=targets, losses=losses)
    return [loss.item() for loss in losses]


# [/ways]


# [checkpoint]
def continued(device):
    """Return the losses after a checkpoint, which was saved from the accelerator."""
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder, 0)
    trained = sharded(SIM)
    losses_of(trained, SIM)
    checkpoint.async_save(trained.state_dict(), checkpoint_id=folder[0]).result()
    fresh = sharded(device)
    state = fresh.state_dict()
    checkpoint.load(state, checkpoint_id=folder[0])
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder[0])
    return losses_of(fresh, device)


# [/checkpoint]


def calls_of(trace):
    """Return the names of what the backend has launched."""
    kinds = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "scatter"}
    kinds |= {"coalesced", "send", "recv"}
    return sorted({name for what, name, _, _ in trace if what == "launch"} & kinds)


torch.accelerator.set_device_index(rank)
dist.init_process_group("cpu:gloo,sim:simccl")
results = {}
# [compare]
for way in (ddp, compiled_ddp, ddp_with_autocast, fsdp2, hsdp, tensor_parallel, pipeline, continued):
    torch.sim.start_trace()
    on_accelerator = way(SIM)
    calls = calls_of(torch.sim.stop_trace())
    results[way.__name__] = [on_accelerator, way(CPU), calls]
# [/compare]
print(json.dumps(results))
dist.destroy_process_group()
