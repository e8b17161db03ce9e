"""Worker: make a mesh of two dimensions, with a device for the group and without one."""

import os

import stream_collectives  # noqa: F401
import torch
import torch.distributed as dist
from torch.distributed import device_mesh

rank = int(os.environ["RANK"])
device = torch.device("sim", rank)
torch.accelerator.set_device_index(rank)
store = next(dist.rendezvous("env://"))[0]
calls = []


def noted(call):
    def note(*arguments, **options):
        calls.append(call.__name__)
        return call(*arguments, **options)

    return note


device_mesh.new_group = noted(device_mesh.new_group)
device_mesh.split_group = noted(device_mesh.split_group)


# [mesh]
def sums_in_a_mesh(device_id):
    ranks = {"rank": rank, "world_size": 4, "store": dist.PrefixStore(str(device_id is None), store)}
    dist.init_process_group("simccl", device_id=device_id, **ranks)
    mesh = device_mesh.init_device_mesh("sim", (2, 2), mesh_dim_names=("copies", "shards"))
    sums = []
    for name in mesh.mesh_dim_names:
        number = torch.full((1,), 10.0**rank, device=device)
        dist.all_reduce(number, group=mesh.get_group(name))
        sums.append(f"{name} {number.item():.0f}")
    print("sums over", ", ".join(sums))
    dist.destroy_process_group()


# [/mesh]


for device_id in (None, device):
    calls.clear()
    print("device_id is given:" if device_id else "no device_id:", end=" ")
    sums_in_a_mesh(device_id)
    if rank == 0:
        print("  calls of every rank:", ", ".join(calls))
    assert calls == (["split_group"] * 2 if device_id else ["new_group"] * 4)
