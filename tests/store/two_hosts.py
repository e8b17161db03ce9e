"""Worker of test_two_hosts: train, send and receive across the hosts, on groups of each host."""

import os

import store_collectives  # noqa: F401
import torch
import torch.distributed as dist

dist.init_process_group("store")
rank, size = dist.get_rank(), dist.get_world_size()
host, per_host = int(os.environ["GROUP_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])

total = torch.full((3_000_000,), float(rank + 1))  # longer than a value of the store
dist.all_reduce(total)
got = torch.empty(2)
send = dist.isend(torch.full((2,), float(rank)), (rank + per_host) % size)
dist.recv(got, (rank - per_host) % size)
send.wait()
here, _ = dist.new_subgroups(per_host)
number = torch.tensor([rank])
dist.all_reduce(number, group=here)
print(host, int(total[0]), int(total[-1]), int(got[0]), int(number))
dist.destroy_process_group()
