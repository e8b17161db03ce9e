"""What ranks run in the tests of several backends, and what their answers must be."""

import os
import signal
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from ranks import client, error_of
from torch.distributed import ReduceOp
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

SOON = timedelta(milliseconds=500)


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


def without_rank_2(rank, how, timeout=None):
    """Return the error of each call, in a group of its own, and the next error of the first one.

    Rank 2 is killed, destroys its groups, aborts them, or has destroyed them before the calls.
    """
    groups = {name: dist.new_group() for name in CALLS}
    dist.barrier()
    if rank == 2:
        time.sleep(0.3)  # Then the others wait in the first call.
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif how in ("destroys", "destroyed"):
            dist.destroy_process_group()
            client().set("2 has left", "")
        else:
            for group in groups.values():
                group.abort()
            client().wait(["0 has ended", "1 has ended"])
        return None
    if timeout:
        for group in groups.values():
            dist.set_timeout(timeout, group)
    if how == "destroyed":
        client().wait(["2 has left"])
    if how in ("destroys", "destroyed"):  # the other rank could still send
        del groups["recv of any rank"]
    errors = {}
    for name, group in groups.items():
        meet(f"{rank} {name}", f"{1 - rank} {name}")
        errors[name] = error_of(CALLS[name], group)
    errors["barrier after all_reduce"] = error_of(dist.barrier, groups["all_reduce"])
    client().set(f"{rank} has ended", "")
    return errors


def meet(mine, other):
    """Let two ranks make a call at the same time, so that neither is late on a busy machine."""
    client().set(mine, "")
    client().wait([other])


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

OF_TWO = ("pieces", "rows", "message")  # The others are for any number of ranks.


def mismatches(rank, calls=MISMATCHES):
    """Return the error of each call, in a group of its own. Ranks 0 and 2 call the same."""
    return {name: error_of(call, rank % 2, dist.new_group()) for name, (call, _) in calls.items()}


def assert_described(answers, calls=MISMATCHES):
    """Require that the errors of `mismatches` name the calls, and not that their time is over."""
    for name, (_, expected) in calls.items():
        for rank, (kind, text, _) in enumerate(errors[name] for errors in answers):
            assert kind == "DistBackendError", text
            assert f"failed on rank {rank}: " in text and "the ranks do not agree: " in text
            assert expected in text, f"{name}: {text}"
