"""Worker: each rank adds the numbers of all ranks, in two orders."""

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

dist.init_process_group("shm")
rank, world_size = dist.get_rank(), dist.get_world_size()


# [orders]
def add_up(number, own_first):
    """Return the sum of the numbers of all ranks."""
    numbers = [torch.empty_like(number) for _ in range(world_size)]
    dist.all_gather(numbers, number)
    if own_first:
        numbers.insert(0, numbers.pop(rank))
    return sum(numbers).item()


number = torch.tensor([1e8, -1e8, 1.0][rank])
print("own number first:", add_up(number, own_first=True))
print("order of the ranks:", add_up(number, own_first=False))
dist.all_reduce(number)
print("all_reduce of shm:", number.item())
# [/orders]

# The order of the ranks can be less exact than another order.
number = torch.tensor([1e8, 1.0, -1e8][rank])
assert add_up(number, own_first=False) == 0
dist.all_reduce(number)
assert number.item() == 0
dist.destroy_process_group()
