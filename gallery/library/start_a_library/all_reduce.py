"""Worker: let torchrun start MPI, reduce, and print what MPI has left in the environment."""

import os

# [start]
import torch
import torch.distributed as dist

import mpi_collectives  # importing it registers "mpich"

dist.init_process_group("mpich")
tensor = torch.full((3,), float(dist.get_rank() + 1))
dist.all_reduce(tensor)
print(tensor.tolist())
print("variables of PMI:", [name for name in os.environ if name.startswith("PMI_")])
dist.destroy_process_group()
# [/start]
