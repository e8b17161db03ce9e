"""Worker: the solution of the exercise. Find the numbers of all ranks in their slots."""

import ctypes

from mapped_memory import mapped_memory

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

dist.init_process_group("shm")
rank, ranks = dist.get_rank(), dist.get_world_size()

# [solution]
for call in range(6):
    dist.all_reduce(torch.tensor(10 * call + rank))

start, _ = mapped_memory()


def number_at(offset):
    """Return the 8 bytes at this offset of the memory as a number."""
    return ctypes.c_int64.from_address(start + offset).value


for other in range(ranks):
    first = 2048 + 128 * ranks + 4 * other * (128 + (256 << 10))
    slots = [first + number * (128 + (256 << 10)) for number in range(4)]
    posted = [number_at(slot + 64) for slot in slots]
    numbers = [number_at(slot + 80) for slot in slots]
    print(f"rank {other}: slots from {first}, posted {posted}, numbers {numbers}")
# [/solution]
dist.destroy_process_group()
