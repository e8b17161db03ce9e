"""Each group has a stream of its own, so that ranks may use groups in different orders."""

import torch
import torch.distributed as dist
from two_ways import device, end, new_group, rank


# [program]
def sums_in_two_groups(broken):
    groups = [new_group(broken, seconds=1) for _ in range(2)]
    numbers = torch.ones(2, 1, device=device)
    order = [0, 1] if rank == 0 else [1, 0]
    works = [dist.all_reduce(numbers[i], group=groups[i], async_op=True) for i in order]
    torch.accelerator.synchronize()
    try:
        for work in works:
            work.wait()
    except dist.DistBackendError as error:
        return f"deadlock: {error}"
    return numbers.flatten().tolist()
# [/program]


print("kept:", sums_in_two_groups(""))
print("broken:", sums_in_two_groups("group_stream"))
end()
