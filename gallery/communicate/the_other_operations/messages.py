"""Worker: sizes that do not agree, and messages that overtake each other."""

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

# [messages]
number = torch.tensor(0)
if rank == 0:
    messages = [(10, 5), (20, 6), (30, 5)]
    works = [dist.isend(torch.tensor(number), 1, tag=tag) for number, tag in messages]
    for work in works:
        work.wait()
else:
    for tag in [6, 5, 5]:
        dist.recv(number, src=0, tag=tag)
        print(f"tag {tag}: {number.item()}")
# [/messages]
dist.destroy_process_group()
