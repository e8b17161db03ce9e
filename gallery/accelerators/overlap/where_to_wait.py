"""Worker: draw the streams of rank 0 with wait() in two places, while rank 1 is late."""

import torch
import torch.distributed as dist
from time_line import draw
from two_ways import device, end, new_group, rank

store = dist.distributed_c10d._get_default_store()
group = new_group()


# [wait]
def draw_all_reduce(wait_before):
    number, other = torch.ones(2, 1, device=device)
    key = f"the streams of rank 0 stand, {wait_before}"
    torch.accelerator.synchronize()
    if rank == 1:
        store.wait([key])
        return dist.all_reduce(number, group=group)
    torch.sim.start_trace()
    work = dist.all_reduce(number, group=group, async_op=True)
    torch.sim.settle(peers=False)
    if wait_before:
        work.wait()
    other *= 2  # needs no sum
    torch.sim.settle(peers=False)
    store.set(key, "")  # now rank 1 may call
    if not wait_before:
        work.wait()
    torch.accelerator.synchronize()
    print(draw(torch.sim.stop_trace(), ["communication", "computation"]))


draw_all_reduce(wait_before=False)
draw_all_reduce(wait_before=True)
# [/wait]
end()
