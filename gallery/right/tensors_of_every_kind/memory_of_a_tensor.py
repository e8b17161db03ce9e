"""Worker: reduce tensors that are not contiguous, by their memory and by their elements."""

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

dist.init_process_group("store")
rank = dist.get_rank()


# [mistake]
def all_reduce_of_memory(tensor):
    """Reduce as many elements as the tensor has, in the order of the memory."""
    dist.all_reduce(tensor.as_strided([tensor.numel()], [1]))


# [/mistake]
# [use]
for all_reduce in [all_reduce_of_memory, dist.all_reduce]:
    print(all_reduce.__name__)
    matrix = torch.tensor([[1, 2], [3, 4]]).t()
    all_reduce(matrix)
    print("    transposed on both ranks:", matrix.tolist())

    matrix = torch.tensor([[1, 2], [3, 4]]).t()
    if rank == 0:
        matrix = matrix.contiguous()
    all_reduce(matrix)
    print("    transposed on rank 1:    ", matrix.tolist())

    matrix = torch.tensor([[1, 2], [3, 4]])
    all_reduce(matrix[:, 0])
    print("    only the first column:   ", matrix.tolist())
# [/use]
assert matrix.tolist() == [[2, 2], [6, 4]]

# [other]
expanded = torch.ones(1).expand(2)  # two elements at one place
rows = list(torch.zeros(2, 2).t())
dist.all_gather(rows, expanded)
print("gathered:", [row.tolist() for row in rows])
try:
    dist.all_reduce(expanded)
except ValueError as error:
    print("all_reduce", str(error).splitlines()[0].partition("all_reduce ")[2])
dist.all_reduce(torch.empty(0))
# [/other]
dist.destroy_process_group()
