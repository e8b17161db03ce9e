"""Worker: the solution of the exercise. Gather tensors whose sizes differ."""

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

dist.init_process_group("store")
rank, world_size = dist.get_rank(), dist.get_world_size()


# [solution]
def all_gather_of_sizes(outputs, tensor):
    """Gather tensors that may have another size on each rank."""
    dist.all_to_all(outputs, [tensor] * len(outputs))


# [/solution]
# [use]
tensor = torch.full([rank + 1], rank)
outputs = [torch.zeros(other + 1, dtype=torch.int64) for other in range(world_size)]
for gather in [dist.all_gather, all_gather_of_sizes]:
    try:
        gather(outputs, tensor)
        print([output.tolist() for output in outputs])
    except ValueError as error:
        print(str(error).splitlines()[0])
# [/use]
assert [output.tolist() for output in outputs] == [[0], [1, 1]]
dist.destroy_process_group()
