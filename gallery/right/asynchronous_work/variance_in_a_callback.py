"""Worker: start a collective in a callback, in a group for callbacks alone."""

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"

dist.init_process_group("store")
rank = dist.get_rank()
values, steps = torch.arange(4.0) + 4 * rank, torch.ones(1)

# [solution]
callbacks = dist.new_group()


def add_up_deviations(ended):
    """Return the variance of the values of all ranks. The future contains their sum."""
    mean = ended.value()[0] / 8
    squares = (values - mean).square().sum()
    dist.all_reduce(squares, group=callbacks)
    return squares / 8


future = dist.all_reduce(values.sum(), async_op=True).get_future()
variance = future.then(add_up_deviations)
for _ in range(10):
    dist.all_reduce(steps)  # the group of the program, in the order of the program
print("the variance:", variance.wait().item())
# [/solution]
assert variance.wait().item() == torch.arange(8.0).var(correction=0).item()
assert steps.item() == 2**10
assert add_up_deviations(future).item() == variance.wait().item()  # whose lines can be traced
dist.destroy_process_group()
