"""Worker: gather into the tensor that has the input, and exchange rows in place."""

import torch
import torch.distributed as dist

import mpi_collectives  # importing it registers "mpich"

dist.init_process_group("mpich")
rank, size = dist.get_rank(), dist.get_world_size()

# [program]
parameters = torch.zeros(size * 1000)
shard = parameters.chunk(size)[rank]  # the same memory
shard.fill_(rank + 1)
dist.all_gather_single(parameters, shard)
print("gathered:", parameters[::1000].tolist())

rows = torch.arange(size * 1000.0) + 10_000 * rank
dist.all_to_all_single(rows, rows)
print("exchanged:", rows[::1000].tolist())
# [/program]
dist.destroy_process_group()
