"""Worker: a group that is made by splitting, where PyTorch can split groups of CPUs."""

from datetime import timedelta

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

dist.init_process_group("store")
rank = dist.get_rank()
limit = timedelta(seconds=30)

if torch.__version__ >= "2.15":
    split_group = dist.split_group
else:  # Earlier releases split groups of accelerators only.

    def split_group(split_ranks, timeout):
        groups = [dist.new_group(x, timeout, use_local_synchronization=True) for x in split_ranks]
        return next(group for group in groups if isinstance(group, dist.ProcessGroup))


# [split]
mine = split_group(split_ranks=[[0, 2], [1]], timeout=limit)
print("ranks", dist.get_process_group_ranks(mine), "this one is rank", mine.rank())
total = torch.tensor(rank)
dist.all_reduce(total, group=mine)
print("the sum is", total.item())
# [/split]
dist.destroy_process_group()
