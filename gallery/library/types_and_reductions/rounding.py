"""Worker: reduce numbers of 16 bits in a short and in a long tensor, on four ranks."""

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

import mpi_collectives  # importing it registers "mpich"

dist.init_process_group("mpich")
gloo = dist.new_group(backend="gloo")
rank = dist.get_rank()

# [sums]
for count in [512, 513]:
    tensor = torch.full((count,), 256.0 if rank == 0 else 1.0, dtype=torch.bfloat16)
    dist.all_reduce(tensor)
    print(f"{2 * count} bytes: the sum is {tensor.unique().tolist()}", end=", ")

    tensor = torch.full((count,), 30_000.0, dtype=torch.float16)
    averages = [tensor.clone(), tensor.clone()]
    dist.all_reduce(averages[0], ReduceOp.AVG)
    dist.all_reduce(averages[1], ReduceOp.AVG, group=gloo)
    ours, its = (average.unique().tolist() for average in averages)
    print(f"the average is {ours}, with gloo {its}")
# [/sums]
dist.destroy_process_group()
