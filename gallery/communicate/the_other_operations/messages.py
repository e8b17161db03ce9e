"""Worker: messages that overtake each other."""

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

dist.init_process_group("shm")
rank = dist.get_rank()

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
