"""Worker: let the first group of MPI lack a rank, and then contain all."""

import torch
import torch.distributed as dist

import mpi_collectives  # importing it registers "mpich"

# [groups]
dist.init_process_group("gloo")


def sum_in(ranks):
    """Reduce in a group of these ranks, and print the sum."""
    group = dist.new_group(ranks, backend="mpich")
    if dist.get_rank() not in ranks:
        return
    one = torch.ones(1)
    dist.all_reduce(one, group=group)
    print(f"ranks {ranks}: the sum is {one.item():g}")


try:
    sum_in([1, 2])
except dist.DistStoreError as error:
    print(error)
sum_in([0, 1, 2])
sum_in([1, 2])
# [/groups]
dist.destroy_process_group()
