"""The ranks call in one order if they wait between the calls, because wait() orders streams."""

import torch
import torch.distributed as dist
from two_ways import device, end, new_group, rank


# [program]
def sums_in_two_groups(order):
    groups = [new_group(seconds=1) for _ in range(2)]
    numbers = torch.ones(2, 1, device=device)
    works = []
    for i in order:
        works.append(dist.all_reduce(numbers[i], group=groups[i], async_op=True))
        works[-1].wait()  # the host goes on, and its stream does not
    torch.accelerator.synchronize()
    try:
        for work in works:
            work.wait()
    except dist.DistBackendError as error:
        return f"deadlock: {error}"
    return numbers.flatten().tolist()
# [/program]


print("kept:", sums_in_two_groups([0, 1]))
print("broken:", sums_in_two_groups([0, 1] if rank == 0 else [1, 0]))
end()
