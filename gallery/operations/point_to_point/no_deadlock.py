"""Worker: three ways in which two ranks can exchange a tensor."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
other = 1 - rank
ours = torch.tensor([rank + 1.0])

# [order]
theirs = torch.empty(1)
if rank == 0:
    dist.send(ours, dst=other)
    dist.recv(theirs, src=other)
else:
    dist.recv(theirs, src=other)
    dist.send(ours, dst=other)
# [/order]
print(f"in order: received {theirs.item():g}")
assert theirs.item() == other + 1.0

# [asynchronous]
theirs = torch.empty(1)
sending = dist.isend(ours, dst=other)
receiving = dist.irecv(theirs, src=other)
sending.wait()
receiving.wait()
# [/asynchronous]
print(f"isend and irecv: received {theirs.item():g}")
assert theirs.item() == other + 1.0

# [batch]
theirs = torch.empty(1)
operations = [
    dist.P2POp(dist.isend, ours, other),
    dist.P2POp(dist.irecv, theirs, other),
]
for work in dist.batch_isend_irecv(operations):
    work.wait()
# [/batch]
print(f"batch_isend_irecv: received {theirs.item():g}")
assert theirs.item() == other + 1.0

dist.destroy_process_group()
