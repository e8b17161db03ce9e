"""Worker: messages with tags, and receives from any rank."""

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

dist.init_process_group("store")
rank = dist.get_rank()

# [messages]
number = torch.tensor(0)
if rank == 1:
    messages = [(10, 5), (20, 6), (30, 5)]
    works = [dist.isend(torch.tensor(number), 0, tag=tag) for number, tag in messages]
    for work in works:
        work.wait()
elif rank == 0:
    for tag in [6, 5, 5]:
        dist.recv(number, src=1, tag=tag)
        print(f"tag {tag}: {number.item()}")

if rank == 0:
    sources = [dist.recv(number, tag=7) for _ in [1, 2]]  # from any rank
    print("received from:", sorted(sources))
else:
    dist.send(torch.tensor(rank), dst=0, tag=7)
# [/messages]
dist.destroy_process_group()
