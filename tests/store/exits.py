"""A rank that exits without destroy_process_group, while much goes on; it prints nothing."""

import store_collectives  # noqa: F401
import torch
import torch.distributed as dist

dist.init_process_group("store", store=dist.HashStore(), rank=0, world_size=1)
dist.all_reduce(torch.ones(1))
for _ in range(100):
    work = dist.all_reduce(torch.ones(1), async_op=True)
    work.get_future().then(lambda future: future.value())
never = dist.irecv(torch.ones(1), 0)  # nobody sends
never.get_future().then(lambda future: None)
