"""Worker: send under one tag in two groups, and receive in the other order."""

import torch
import torch.distributed as dist

import mpi_collectives  # importing it registers "mpich"

dist.init_process_group("mpich")
rank = dist.get_rank()

# [groups]
pair = dist.new_group([0, 2])
if rank == 0:
    of_world = dist.isend(torch.tensor(1), dst=2, tag=5)
    of_pair = dist.isend(torch.tensor(2), dst=2, tag=5, group=pair)
    of_world.wait()
    of_pair.wait()
if rank == 2:
    got = torch.tensor(0)
    dist.recv(got, src=0, tag=5, group=pair)
    print(f"in the pair, as rank {dist.get_rank(pair)} of it: {got}")
    dist.recv(got, src=0, tag=5)
    print(f"in the world: {got}")
# [/groups]
# [order]
if rank != 1:
    sends = [dist.isend(torch.tensor(10 * rank + i), dst=1, tag=7) for i in range(3)]
    for send in sends:
        send.wait()
else:
    received = {0: [], 2: []}
    for _ in range(6):
        source = dist.recv(got := torch.tensor(0), tag=7)
        received[source].append(got.item())
    print("from any rank:", received)
# [/order]
dist.destroy_process_group()
