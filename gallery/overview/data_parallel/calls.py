"""Worker: count which collectives DDP calls in its constructor and in each step."""

import json

import torch
import torch.distributed as dist
import torch.distributed.nn  # See several_nodes/several_nodes.py.
from torch import nn
from torch.distributed.tensor.debug import CommDebugMode
from torch.nn.parallel import DistributedDataParallel

from branches import Branches

dist.init_process_group("gloo")
rank = dist.get_rank()


# [calls]
def count(function):
    """Call a function; return its result, and the collectives that it has called."""
    with CommDebugMode() as counter:
        result = function()
    counts = counter.get_comm_counts().items()
    calls = [f"{n} {str(call).split('.')[-1].strip('_')}" for call, n in counts]
    return result, ", ".join(calls)


def calls_of(model, **options):
    """Collectives of the constructor and of three steps."""
    replica, calls = count(lambda: DistributedDataParallel(model, **options))
    column = [calls]
    for _ in range(3):
        _, calls = count(lambda: replica(torch.ones(2, 4)).sum().backward())
        column.append(calls)
    return column


columns = [
    calls_of(nn.Linear(4, 4)),
    calls_of(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))),
    calls_of(Branches(), find_unused_parameters=True),
]
# [/calls]
step = ["1 allreduce", "2 broadcast, 1 allreduce", "1 allreduce"]
assert columns[0] == ["1 allgather, 2 broadcast", *step], columns
if rank == 0:
    print(json.dumps(columns))

# What the page says and does not show.
unlike = nn.Linear(4, 4)
nn.init.constant_(unlike.weight, rank)
replica = DistributedDataParallel(unlike)
assert torch.equal(replica.module.weight, torch.zeros(4, 4)), "not the values of rank 0"
del replica  # See several_nodes/several_nodes.py.
dist.destroy_process_group()
