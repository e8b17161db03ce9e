"""Worker: one all-gather through three methods of the backend."""

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

dist.init_process_group("store")
rank, world_size = dist.get_rank(), dist.get_world_size()
numbers = torch.tensor([10 + rank, 20 + rank])

# [variants]
several = [torch.empty_like(numbers) for _ in range(world_size)]
dist.all_gather(several, numbers)  # allgather
print("list:", [tensor.tolist() for tensor in several])

one = torch.empty(2 * world_size, dtype=numbers.dtype)
dist.all_gather_single(one, numbers)  # _allgather_base
print("one tensor:", one.tolist())

halves = one[:world_size], one[world_size:]
with dist._coalescing_manager(async_ops=True) as calls:  # allgather_into_tensor_coalesced
    for half, number in zip(halves, numbers.split(1), strict=True):
        dist.all_gather_single(half, number)
calls.wait()
print("two calls, one work:", [half.tolist() for half in halves])
# [/variants]
dist.destroy_process_group()
