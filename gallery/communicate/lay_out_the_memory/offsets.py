"""Worker: compute where the parts of the memory begin, and compare its size."""

import mmap

from mapped_memory import mapped_memory

import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

dist.init_process_group("shm")
ranks = dist.get_world_size()

# [offsets]
header, member, slot = 2048, 2 * 64, 2 * 64 + (256 << 10)
part = min(max((8 << 20) // (4 * ranks**2) // 4096 * 4096, 4096), 128 << 10)
ring = 64 + 4 * (2 * 64 + part)

members_at = header
slots_at = members_at + ranks * member
rings_at = slots_at + ranks * 4 * slot
total = rings_at + ranks**2 * ring
print(f"members at {members_at}, slots at {slots_at}, rings at {rings_at}")
print("end at", total)

start, end = mapped_memory()
pages = -(-total // mmap.PAGESIZE)
print("as large as computed:", end - start == pages * mmap.PAGESIZE)
# [/offsets]
dist.destroy_process_group()
