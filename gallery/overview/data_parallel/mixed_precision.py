"""Worker: show the types in which DDP computes and all-reduces."""

import torch
import torch.distributed as dist
import torch.distributed.nn  # See several_nodes/several_nodes.py.
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()


# [types]
def record_type(types, bucket):
    types.append(bucket.buffer().dtype)
    return allreduce_hook(None, bucket)  # Does what DDP would have done.


def show_types(name, layer, autocast):
    types = []
    model = DistributedDataParallel(layer)
    model.register_comm_hook(types, record_type)
    inputs = torch.ones(2, 4, dtype=layer.weight.dtype)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        outputs = model(inputs)
    outputs.float().sum().backward()  # The loss in float32.
    if rank == 0:
        print(f"{name}: outputs {outputs.dtype}, all-reduce {types[0]}")


layers = nn.Linear(4, 4), nn.Linear(4, 4).bfloat16()
show_types("autocast", layers[0], autocast=True)
show_types("converted model", layers[1], autocast=False)
# [/types]
assert layers[0].weight.dtype == layers[0].weight.grad.dtype == torch.float32
dist.destroy_process_group()
