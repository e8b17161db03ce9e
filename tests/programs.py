"""What ranks run in the tests of several backends."""

import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from ranks import error_of
from torch.distributed import ReduceOp
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

from tools.project.paths import GALLERY

SOON = timedelta(milliseconds=200)


def losses(rank):
    sys.path.insert(0, str(GALLERY))
    import training_runs

    groups = dist.group.WORLD, dist.new_group(backend="gloo")
    features = training_runs.ddp, training_runs.fsdp2
    return [[[x.step() for _ in range(10)] for x in map(f, groups)] for f in features]


def power_sgd(rank):
    """Train with a hook whose callback waits for a future that it asks for itself."""
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    for _ in range(4):
        model(torch.ones(2, 64) + rank).square().mean().backward()
    return float(model.module.weight.grad.sum())


def ones(count=1):
    return torch.ones(count)


# Each way to wait, of rank 0 or 1 with a group that has lost rank 2.
CALLS = {
    "all_reduce": lambda g: dist.all_reduce(ones(), group=g),
    "gather": lambda g: dist.gather(ones(), None, 2, group=g),
    "barrier": lambda g: dist.barrier(group=g),
    "future": lambda g: dist.all_reduce(ones(), group=g, async_op=True).get_future().wait(),
    "send": lambda g: dist.send(ones(), 2, group=g),
    "recv": lambda g: dist.recv(ones(), 2, group=g),
    "recv of any rank": lambda g: dist.recv(ones(), group=g),
    "monitored_barrier": lambda g: dist.monitored_barrier(g, SOON, wait_all_ranks=True),
}


MISMATCHES = {
    "operation": (
        lambda r, g: dist.barrier(g) if r else dist.all_reduce(ones(), group=g),
        "rank 1 runs barrier #1",
    ),
    "size": (lambda r, g: dist.all_reduce(ones(1 + r), group=g), "of 8 bytes of float32"),
    "dtype": (
        lambda r, g: dist.all_reduce(ones().to([torch.int, torch.half][r]), group=g),
        "int32",
    ),
    "ReduceOp": (
        lambda r, g: dist.all_reduce(ones(), [ReduceOp.MIN, ReduceOp.MAX][r], group=g),
        "with MAX",
    ),
    "root": (lambda r, g: dist.broadcast(ones(), r, group=g), "with root 1"),
    "pieces": (
        lambda r, g: dist.reduce_scatter(ones(1 + r), [ones(1), ones(3 - r)], group=g),
        "in different pieces",
    ),
    "rows": (
        lambda r, g: dist.all_to_all_single(ones(4), ones(3), [2, 2], [1 + r, 2 - r], group=g),
        "sends 4 bytes to rank",
    ),
    "message": (
        lambda r, g: dist.recv(ones(2), 0, g) if r else dist.send(ones(3), 1, g),
        "send of 12 bytes of float32 with tag 0 to rank 1, rank 1 runs recv of 8 bytes",
    ),
}


def mismatches(rank, calls=MISMATCHES):
    return {name: error_of(call, rank, dist.new_group()) for name, (call, _) in calls.items()}
