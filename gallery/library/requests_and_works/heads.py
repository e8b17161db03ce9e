"""Worker: call all_reduce with tensors of different sizes."""

import torch
import torch.distributed as dist

import mpi_collectives  # importing it registers "mpich"

dist.init_process_group("mpich")
rank = dist.get_rank()

# [program]
try:
    dist.all_reduce(torch.ones(1000 if rank == 0 else 2000))
except dist.DistBackendError as error:
    print(str(error).splitlines()[0].split(" failed on ")[-1])
# [/program]
dist.destroy_process_group()
