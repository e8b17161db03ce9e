"""Worker: compare the sums of three ranks, of store and gloo, bit for bit."""

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

dist.init_process_group("store")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)

# [solution]
ours, gloo = dist.group.WORLD, dist.new_group(backend="gloo")


def compare(name, numbers):
    """Print whether the sums of all ranks have the same bits with both backends."""
    mine, theirs = numbers.clone(), numbers.clone()
    dist.all_reduce(mine, group=ours)
    dist.all_reduce(theirs, group=gloo)
    print(f"{name}: equal {torch.equal(mine, theirs)}, close {torch.allclose(mine, theirs)}")
    return mine


sums = compare("fractions", torch.rand(10_000))
compare("integers", torch.randint(1000, (10_000,)).float())

copies = [torch.empty_like(sums) for _ in range(world_size)]
dist.all_gather(copies, sums)
print("all ranks have the same bits:", all(torch.equal(copy, sums) for copy in copies))
# [/solution]

# The frame adds in the order of the ranks.
mine = torch.rand(1000)
parts = [torch.empty_like(mine) for _ in range(world_size)]
dist.all_gather(parts, mine)
dist.all_reduce(mine)
assert torch.equal(mine, (parts[0] + parts[1]) + parts[2])
dist.destroy_process_group()
