"""Worker: fail a receive, use its tensor again, and let the message arrive after all."""

from datetime import timedelta

import torch
import torch.distributed as dist

import mpi_collectives  # importing it registers "mpich"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("mpich", store=store, rank=rank, world_size=size)


# [receive]
def fail_to_receive(tensor):
    """Wait for rank 1, which is late, until the group fails."""
    receive = dist.irecv(tensor, src=1, group=group)
    try:
        dist.barrier(group, timeout=timedelta(seconds=0.3))
    except dist.DistBackendError:
        pass
    try:
        receive.wait()
    except dist.DistBackendError:
        print(f"{name}: the receive has failed")


# [/receive]
# [ways]
for name in ["the same tensor", "a new tensor"]:
    group = dist.new_group()
    if rank == 0:
        tensor = torch.zeros(3)
        fail_to_receive(tensor)
        if name == "a new tensor":
            tensor = torch.empty(3)
        tensor.fill_(7)  # the program needs it for something else
        store.set(f"{name} is in use", "")
    else:
        store.wait([f"{name} is in use"])
        late = dist.isend(torch.ones(3), dst=0, group=group)
    dist.barrier()  # of the default group, which still works
    if rank == 0:
        print(f"    it contains {tensor.tolist()}")
# [/ways]
dist.barrier()
dist.destroy_process_group()
