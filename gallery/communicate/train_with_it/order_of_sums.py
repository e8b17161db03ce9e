"""Worker: compare the sums of three ranks, of shm and gloo, bit for bit."""

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"

dist.init_process_group("shm")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)

# [solution]
shm, gloo = dist.group.WORLD, dist.new_group(backend="gloo")


def compare(name, numbers):
    """Print whether the sums of all ranks have the same bits with both backends."""
    ours, theirs = numbers.clone(), numbers.clone()
    dist.all_reduce(ours, group=shm)
    dist.all_reduce(theirs, group=gloo)
    print(f"{name}: equal {torch.equal(ours, theirs)}, close {torch.allclose(ours, theirs)}")
    return ours


sums = compare("fractions", torch.rand(100_000))
compare("integers", torch.randint(1000, (100_000,)).float())

copies = [torch.empty_like(sums) for _ in range(world_size)]
dist.all_gather(copies, sums)
print("all ranks have the same bits:", all(torch.equal(copy, sums) for copy in copies))
# [/solution]

# Up to 16 KiB, shm adds in the order of the ranks.
mine = torch.rand(1000)
parts = [torch.empty_like(mine) for _ in range(world_size)]
dist.all_gather(parts, mine)
dist.all_reduce(mine)
assert torch.equal(mine, (parts[0] + parts[1]) + parts[2])
dist.destroy_process_group()
