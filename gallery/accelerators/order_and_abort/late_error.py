"""Worker: reduce tensors of different sizes, which the ranks learn only in the stream."""

from datetime import timedelta

import store_collectives  # importing it registers "store"
import stream_collectives
import torch
import torch.distributed as dist
from two_ways import device, end, rank


# [late]
def error_of(call):
    """Return the first line of the error that a call raises."""
    try:
        call()
        return "no error"
    except dist.DistBackendError as error:
        return str(error).splitlines()[0]


options = stream_collectives.Options(timedelta(seconds=30))
options.library = "store"
group = dist.new_group(backend="simccl", pg_options=options)
work = dist.all_reduce(torch.ones(1 + rank, device=device), group=group, async_op=True)
torch.accelerator.synchronize()
print("completed:", work.is_completed())
print("future:", error_of(work.get_future().wait))
print("wait():", error_of(work.wait).split(" failed on ")[-1])
next_call = error_of(lambda: dist.all_reduce(torch.ones(1, device=device), group=group))
print("next call:", next_call.split(": Backend")[0])
# [/late]
end()
