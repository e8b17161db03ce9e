"""Worker: roots of a sub-group, messages with tags, and a batch."""

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

dist.init_process_group("store")
rank, world_size = dist.get_rank(), dist.get_world_size()

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
dist.barrier()

# [messages]
number = torch.tensor(0)
if rank == 1:
    messages = [(10, 5), (20, 6), (30, 5)]
    works = [dist.isend(torch.tensor(number), 0, tag=tag) for number, tag in messages]
    for work in works:
        work.wait()
elif rank == 0:
    for tag in [6, 5, 5]:
        dist.recv(number, src=1, tag=tag)
        print(f"tag {tag}: {number.item()}")

if rank == 0:
    sources = [dist.recv(number, tag=7) for _ in [1, 2]]  # from any rank
    print("received from:", sorted(sources))
else:
    dist.send(torch.tensor(rank), dst=0, tag=7)
# [/messages]

# [batch]
right, left = (rank + 1) % world_size, (rank - 1) % world_size
sends = dist.P2POp(dist.isend, torch.tensor(rank), right)
receives = dist.P2POp(dist.irecv, number, left)
works = dist.batch_isend_irecv([sends, receives])
for work in works:
    work.wait()
print(f"{len(works)} works, received {number.item()} from rank {left}")
# [/batch]
assert number.item() == left
dist.destroy_process_group()
