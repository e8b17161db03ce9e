"""Ranks that train on `sim` with `simccl`, and on the CPU with gloo: one JSON line.

In the ways that neither the suite in conformance/ nor the samples of gallery/accelerators have.
"""

import json
import os
import tempfile
import warnings

import stream_collectives  # noqa: F401
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Shard, randn

warnings.simplefilter("ignore")
rank = int(os.environ["RANK"])
CPU, SIM = torch.device("cpu"), torch.device("sim", rank)


def model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)
    )


def train(model, device):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    losses = []
    for step in range(4):
        generator = torch.Generator().manual_seed(2 * step + rank)
        inputs, targets = (torch.randn(4, n, generator=generator).to(device) for n in (8, 4))
        loss = (model(inputs).float() - targets).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(round(loss.item(), 5))
    return losses


def fsdp2(device, **options):
    mesh = init_device_mesh(device.type, (2,))
    sharded = model() if "offload_policy" in options else model().to(device)
    for layer in [*sharded[::2], sharded]:
        fully_shard(layer, mesh=mesh, **options)
    return train(sharded, device)


def fsdp2_in_bfloat16(device):
    return fsdp2(device, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float))


def fsdp2_with_offload(device):
    return fsdp2(device, offload_policy=CPUOffloadPolicy())


def checkpoint(device):
    mesh = init_device_mesh(device.type, (2,))
    one, other = (fully_shard(model().to(device), mesh=mesh) for _ in range(2))
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder, 0, device=CPU)
    dcp.async_save(one.state_dict(), checkpoint_id=folder[0]).result()
    state = other.state_dict()
    dcp.load(state, checkpoint_id=folder[0])
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.equal(a.full_tensor(), b.full_tensor()) for a, b in pairs)


def random_dtensor():
    """Return whether the shards differ, and whether the same seed gives the same numbers."""
    mesh, both = init_device_mesh("sim", (2,)), []
    for _ in range(2):
        torch.manual_seed(3)
        both.append(randn(4, 3, device_mesh=mesh, placements=[Shard(0)]).full_tensor())
    return bool((both[0][:2] != both[0][2:]).all()) and torch.equal(*both)


torch.accelerator.set_device_index(rank)
dist.init_process_group("cpu:gloo,sim:simccl")
ways = [fsdp2_in_bfloat16, fsdp2_with_offload, checkpoint]
results = {way.__name__: [way(SIM), way(CPU)] for way in ways}
results["random_dtensor"] = [random_dtensor(), True]
print(json.dumps(results))
dist.destroy_process_group()
