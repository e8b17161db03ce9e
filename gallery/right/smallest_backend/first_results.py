"""Worker: use the backend "store" with collectives, messages, and a work."""

# [program]
import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

dist.init_process_group("store")
rank, world_size = dist.get_rank(), dist.get_world_size()

work = dist.all_reduce(total := torch.tensor([rank + 1.0]), async_op=True)
received = torch.empty(2, dtype=torch.int64)
send = dist.isend(torch.tensor([rank, rank * rank]), (rank + 1) % world_size)
dist.recv(received, (rank - 1) % world_size)
send.wait()
work.wait()
print("sum", total.tolist(), "received", received.tolist())
# [/program]
assert total.item() == sum(range(1, world_size + 1))
before = (rank - 1) % world_size
assert received.tolist() == [before, before * before]
dist.destroy_process_group()
