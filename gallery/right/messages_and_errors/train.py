"""Worker: train the same model with "store" and with gloo, and compare the losses."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.device_mesh import DeviceMesh
from torch.nn.parallel import DistributedDataParallel

import store_collectives  # importing it registers "store"

dist.init_process_group("store")
rank = dist.get_rank()


def ddp(model, group):
    return DistributedDataParallel(model, process_group=group)


def fsdp2(model, group):
    # Equal meshes share what DTensor caches, unless their dimensions have other names.
    mesh = DeviceMesh.from_group(group, "cpu", mesh_dim_names=(group.name(),))
    return fully_shard(model, mesh=mesh)


# [train]
def losses(prepare, group):
    """Train ten steps; return the losses."""
    torch.manual_seed(0)
    layers = torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)
    model = prepare(torch.nn.Sequential(*layers), group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)  # each rank has data of its own
    inputs, targets = torch.randn(64, 8), torch.randn(64, 1)
    found = []
    for _ in range(10):
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


groups = [dist.group.WORLD, dist.new_group(backend="gloo")]
for prepare in (ddp, fsdp2):
    ours, gloos = [losses(prepare, group) for group in groups]
    print(f"{prepare.__name__}: {ours[0]:.4f} to {ours[-1]:.4f}, equal: {ours == gloos}")
    assert ours == gloos and ours[-1] < ours[0]
# [/train]
dist.destroy_process_group()
