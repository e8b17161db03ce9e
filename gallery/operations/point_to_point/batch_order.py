"""Worker: the order of the lists decides which message a tensor receives."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
backend = dist.group.WORLD._get_backend(torch.device("cpu"))

if dist.get_rank() == 0:
    print("gloo supports coalescing:", backend.supports_coalescing)
    tensors = [torch.tensor([1.0]), torch.tensor([2.0])]
    operations = [dist.P2POp(dist.isend, tensor, 1) for tensor in tensors]
else:
    tensors = [torch.empty(1), torch.empty(1)]
    operations = [dist.P2POp(dist.irecv, tensor, 0) for tensor in reversed(tensors)]
for work in dist.batch_isend_irecv(operations):
    work.wait()
if dist.get_rank() == 1:
    print("received:", [tensor.item() for tensor in tensors])
    assert [tensor.item() for tensor in tensors] == [2.0, 1.0]
assert not backend.supports_coalescing

dist.destroy_process_group()
