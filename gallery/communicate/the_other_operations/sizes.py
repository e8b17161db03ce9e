"""Worker: sizes that do not agree."""

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

dist.init_process_group("shm")
rank = dist.get_rank()

# [sizes]
group = dist.new_group()
rows = [1, 2] if rank == 0 else [1, 1]
try:
    dist.all_to_all_single(torch.empty(2), torch.ones(sum(rows)), [1, 1], rows, group=group)
except dist.DistBackendError as error:
    print(str(error).splitlines()[0].partition(" do not agree: ")[2])
# [/sizes]
tensor = torch.tensor(0)
pieces = [torch.tensor(100 + to) for to in range(2)]
dist.scatter(tensor, pieces if rank == 0 else None, src=0)
assert tensor.item() == 100 + rank
dist.destroy_process_group()
