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

# The collectives that no other program of this page calls.
mine, whole = torch.full((1000,), float(rank)), torch.empty(size, 1000)
dist.broadcast(number := mine.clone(), src=1)
assert number[0] == 1
dist.scatter(number, [*torch.tensor([[5.0], [6.0]]).expand(2, 1000)] if rank == 0 else None)
assert number[0] == 5 + rank
dist.gather(mine, [*whole] if rank == 0 else None)
assert rank == 1 or whole[:, 0].tolist() == [0, 1]
dist.reduce_scatter_single(number, torch.arange(2.0).repeat_interleave(1000) + rank)
assert number[0] == 1 + 2 * rank
dist.destroy_process_group()
