"""Worker: add tensors of different shapes, without and with a check before the operation."""

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("shm", store=store, rank=rank, world_size=size)


# [shapes]
def reduce(shape, group):
    """Return the sum over all ranks, or the end of the error."""
    rows, columns = (torch.arange(length) for length in shape)
    tensor = 10 * rows[:, None] + columns
    try:
        dist.all_reduce(tensor, group=group)
        return tensor.tolist()
    except RuntimeError as error:
        return str(error).partition("following aspects:")[2].strip()


shape = (2, 3) if rank == 0 else (3, 2)

group = dist.new_group(backend="shm")
print("OFF:   ", reduce(shape, group))

dist.set_debug_level(dist.DebugLevel.DETAIL)
group = dist.new_group(backend="shm")
print("DETAIL:", reduce(shape, group))
print("the next call:", reduce((2, 2), group))
# [/shapes]
dist.set_debug_level(dist.DebugLevel.OFF)
dist.destroy_process_group()
