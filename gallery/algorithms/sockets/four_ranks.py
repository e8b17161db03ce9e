"""Worker: a collective and messages over sockets."""

import torch
import torch.distributed as dist

import tcp_collectives  # importing it registers "tcp"

# [calls]
options = tcp_collectives.Options()
options.interface = "lo"
options.algorithms = "all_reduce=ring"
dist.init_process_group("tcp", pg_options=options)
rank, size = dist.get_rank(), dist.get_world_size()

dist.all_reduce(total := torch.full((1000,), float(rank)))
numbers = torch.empty(1000)
send = dist.isend(total + rank, (rank + 1) % size, tag=7)
dist.recv(numbers, (rank - 1) % size, tag=7)
send.wait()
print(f"the sum is {total[0]:.0f}, and {numbers[0]:.0f} has come from rank {(rank - 1) % size}")
# [/calls]
dist.destroy_process_group()
