"""Worker: all-reduce and all-gather through the dummy backend."""

import torch
import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

dist.init_process_group("dummy")
rank, world_size = dist.get_rank(), dist.get_world_size()

ours = torch.full((2,), rank + 1.0)
print(f"before all_reduce: {ours.tolist()}")
dist.all_reduce(ours)
print(f"after all_reduce:  {ours.tolist()}")
assert ours.tolist() == [0.0, 0.0]

ours = torch.full((2,), rank + 1.0)
everyones = [torch.full((2,), -1.0) for _ in range(world_size)]
dist.all_gather(everyones, ours)
print(f"after all_gather:  {[tensor.tolist() for tensor in everyones]}")
assert all(tensor.tolist() == [0.0, 0.0] for tensor in everyones)
assert ours.tolist() == [rank + 1.0, rank + 1.0], "the input stays as it was"

dist.destroy_process_group()
