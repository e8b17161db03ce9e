"""Worker: roots of a sub-group, as ranks of the world and of the group."""

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

dist.init_process_group("store")
rank = dist.get_rank()

# [roots]
group = dist.new_group([1, 2])  # rank 0 calls it, too, and is not in the group
if rank in [1, 2]:
    tensor = torch.tensor(0)
    pieces = [torch.tensor(100 * rank + to) for to in [1, 2]]
    dist.scatter(tensor, pieces if rank == 1 else None, src=1, group=group)
    print("src=1:", tensor.item())
    dist.scatter(tensor, pieces if rank == 2 else None, group_src=1, group=group)
    print("group_src=1:", tensor.item())

    options = dist.BroadcastOptions()
    options.rootRank = 2
    try:
        group.broadcast([tensor], options)
    except ValueError as error:
        print(str(error).splitlines()[0])
# [/roots]
dist.destroy_process_group()
