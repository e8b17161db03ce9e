"""The communication has a stream of its own, so that the program's kernels run beside it."""

import torch
import torch.distributed as dist
from two_ways import device, rank, show

store = dist.distributed_c10d._get_default_store()


# [program]
def time_line(group):
    """Return the order of what happens in the streams of rank 0, while rank 1 is late."""
    number, other = torch.ones(2, 1, device=device)
    key = f"the streams of rank 0 stand, {group.group_name}"
    torch.accelerator.synchronize()
    if rank == 1:
        store.wait([key])
        dist.all_reduce(number, group=group)
        return "late"
    torch.sim.start_trace()
    work = dist.all_reduce(number, group=group, async_op=True)
    torch.sim.settle(peers=False)  # nothing more happens without rank 1
    other *= 2
    torch.sim.settle(peers=False)
    store.set(key, "")
    work.wait()
    torch.accelerator.synchronize()
    steps = [(what, name) for what, name, _, _ in torch.sim.stop_trace() if "wait" not in name]
    return ", ".join(f"{what} {name}" for what, name in steps if what != "launch")


# [/program]


show("own_stream", time_line)
