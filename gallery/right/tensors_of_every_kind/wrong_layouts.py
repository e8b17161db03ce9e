"""Worker: the solution of the exercise. Find the layouts in which an all-reduce is wrong."""

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

dist.init_process_group("store")
rank = dist.get_rank()


def all_reduce_of_memory(tensor):
    dist.all_reduce(tensor.as_strided([tensor.numel()], [1]))


def all_reduce_of_copy(tensor):
    dist.all_reduce(tensor.contiguous())


# [solution]
LAYOUTS = {
    "one row": lambda matrix: matrix[1],
    "transposed": lambda matrix: matrix.t(),
    "one column": lambda matrix: matrix[:, 1],
}


def wrong_layouts(all_reduce):
    """Return the layouts of rank 0 in which two ranks do not get the doubled elements."""
    wrong = []
    for name, layout in LAYOUTS.items():
        matrix = torch.arange(9).view(3, 3)
        expected = matrix.clone()
        layout(expected).mul_(2)
        tensor = layout(matrix) if rank == 0 else layout(matrix).contiguous()
        all_reduce(tensor)
        layout(matrix).copy_(tensor)
        if not matrix.equal(expected):
            wrong.append(name)
    return wrong


# [/solution]
for all_reduce in [all_reduce_of_memory, all_reduce_of_copy, dist.all_reduce]:
    print(f"{all_reduce.__name__} is wrong: {wrong_layouts(all_reduce)}")
dist.destroy_process_group()
