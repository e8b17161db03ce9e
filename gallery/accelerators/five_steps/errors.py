"""Errors of a call: one that its arguments show, and one that the library finds in the stream."""

from datetime import timedelta

import store_collectives  # noqa: F401  # importing it registers "store"
import stream_collectives
import torch
import torch.distributed as dist
from two_ways import device, end, rank

options = stream_collectives.Options(timedelta(seconds=30))
options.library = "store"  # which compares the calls of the ranks
group = dist.new_group(backend="simccl", pg_options=options)


# [program]
def show_error(name, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except Exception as error:
        beginning = str(error).partition(": rank 0 runs")[0]
        print(f"{name}: {type(error).__name__}: {beginning}")


truths = torch.ones(1, dtype=torch.bool, device=device)
show_error("a sum of bool", dist.all_reduce, truths, group=group)

numbers = torch.ones(1 + rank, device=device)  # one on rank 0, and two on rank 1
work = dist.all_reduce(numbers, group=group, async_op=True)
torch.accelerator.synchronize()
print("the stream has ended it:", work.is_completed())
show_error("wait", work.wait)
show_error("the next call", dist.all_reduce, torch.ones(1, device=device), group=group)
# [/program]
end()
