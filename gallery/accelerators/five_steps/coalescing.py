"""Three calls, one after another and coalesced, on a time line of rank 0."""

import torch
import torch.distributed as dist
from time_line import draw
from two_ways import device, end, hold_communication, new_group, rank

group = new_group()


# [program]
def one_after_another(tensors):
    for tensor in tensors:
        dist.all_reduce(tensor, group=group)


def coalesced(tensors):
    with dist._coalescing_manager(group, device):
        for tensor in tensors:
            dist.all_reduce(tensor, group=group)


def messages(tensors):
    operations = [
        dist.P2POp(dist.irecv, tensors[0], 1 - rank, group),
        dist.P2POp(dist.isend, tensors[1], 1 - rank, group),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()


for reduce in [one_after_another, coalesced, messages]:
    tensors = list(torch.full((3, 1), rank + 1.0, device=device))
    torch.accelerator.synchronize()
    torch.sim.start_trace()
    gate = hold_communication(group)
    reduce(tensors)
    gate.open()
    torch.accelerator.synchronize()
    lines = draw(torch.sim.stop_trace(), ["communication"])
    if rank == 0:
        print(f"{reduce.__name__}: {torch.cat(tensors).tolist()}")
        print(lines)

total, largest = torch.full((2, 1), rank + 1.0, device=device)
with dist._coalescing_manager(group, device):
    dist.all_reduce(total, dist.ReduceOp.SUM, group)
    dist.all_reduce(largest, dist.ReduceOp.MAX, group)
if rank == 0:
    print("SUM and MAX, coalesced:", total.item(), largest.item())
# [/program]
end()
