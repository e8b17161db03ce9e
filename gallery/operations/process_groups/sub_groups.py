"""Worker: two groups of two ranks in a world of four."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()

# Every rank must create every group in the same order, also groups without that rank.
even = dist.new_group([0, 2])
odd = dist.new_group([1, 3])
mine = even if rank % 2 == 0 else odd

total = torch.tensor([float(rank)])
dist.all_reduce(total)
part = torch.tensor([float(rank)])
dist.all_reduce(part, group=mine)
print(
    f"rank {dist.get_group_rank(mine, rank)} of its group; "
    f"sum over the world {total.item():g}, over the group {part.item():g}"
)
assert total.item() == 0 + 1 + 2 + 3
assert part.item() == (0 + 2 if rank % 2 == 0 else 1 + 3)

dist.destroy_process_group()
