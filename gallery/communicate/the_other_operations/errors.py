"""Worker: the errors of lost_ranks.py, in ranks that end well: only theirs count as executed."""

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"


def error_of(group, numbers):
    try:
        dist.all_reduce(torch.ones(numbers), group=group)
    except dist.DistBackendError as error:
        return str(error)


dist.init_process_group("shm")
rank = dist.get_rank()
assert "the ranks do not agree" in error_of(dist.new_group(), numbers=1 + rank)
group = dist.new_group()
if rank == 1:
    dist.destroy_process_group(group)
else:
    assert "rank 1 has left the group" in error_of(group, numbers=1)
dist.barrier()
dist.destroy_process_group()
