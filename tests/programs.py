"""What ranks run in the tests of several backends, and what their answers must be."""

import errno
import itertools
import os
import signal
import time
from datetime import timedelta
from functools import partial

import torch
import torch.distributed as dist
from ranks import client, error_of, refuse
from torch.distributed import ReduceOp
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

SOON = timedelta(milliseconds=500)
LATER = timedelta(minutes=5)


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


# Each way to wait, of rank 0 or 1 with a group that has lost rank 2. A monitored barrier takes no
# timeout from its group.
CALLS = {
    "all_reduce": lambda g: dist.all_reduce(ones(), group=g),
    "gather": lambda g: dist.gather(ones(), None, 2, group=g),
    "barrier": lambda g: dist.barrier(group=g),
    "future": lambda g: dist.all_reduce(ones(), group=g, async_op=True).get_future().wait(),
    "send": lambda g: dist.send(ones(), 2, group=g),
    "recv": lambda g: dist.recv(ones(), 2, group=g),
    "recv of any rank": lambda g: dist.recv(ones(), group=g),
}


def without_rank_2(rank, how, timeout=None):
    """Return the error of each call, in a group of its own, and the next error of the first one.

    Rank 2 is killed, destroys its groups, aborts them, or has destroyed them before the calls.
    """
    monitored = partial(dist.monitored_barrier, timeout=timeout or LATER, wait_all_ranks=True)
    calls = CALLS | {"monitored_barrier": monitored}
    groups = {name: dist.new_group() for name in calls}
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
        errors[name] = error_of(calls[name], group)
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


# In the int64 of an argument, sums of these overflow.
LIMITS = [2**63 - 1, -(2**63), 2**62, 2**32, -1]


def wrong_splits(rows):
    """Return split sizes for three ranks that are wrong, although their sum in int64 is right."""
    triples = []
    for first, second in itertools.product([0, 1, *LIMITS], repeat=2):
        third = (rows - first - second + 2**63) % 2**64 - 2**63
        triples.append([first, second, third])
    return [triple for triple in triples if min(triple) < 0 or sum(triple) != rows]


def wrong_calls():
    """Return calls of rank 1 of 3 with numbers of up to the limits of their types, by text."""
    tensor, three = torch.ones(3), [ones() for _ in range(3)]
    calls = {}
    for splits in wrong_splits(3):
        calls[f"sends {splits}"] = partial(dist.all_to_all_single, ones(3), tensor, None, splits)
        calls[f"gets {splits}"] = partial(dist.all_to_all_single, tensor, ones(3), splits)
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    for name, kind, arguments in [
        ("broadcast", dist.BroadcastOptions, [three[:1]]),
        ("reduce", dist.ReduceOptions, [three[:1]]),
        ("gather", dist.GatherOptions, [[three], [ones()]]),
        ("scatter", dist.ScatterOptions, [[ones()], [three]]),
    ]:
        for root in [3, *LIMITS]:
            options = kind()
            options.rootRank = root
            calls[f"{name} of {root}"] = partial(getattr(backend, name), *arguments, options)
    for number in [3, 2**31 - 1, -(2**31), *LIMITS]:
        calls[f"send to {number}"] = partial(backend.send, [ones()], number, 0)
        calls[f"receive from {number}"] = partial(backend.recv, [ones()], number, 0)
        if not 0 <= number < 2**31:
            calls[f"tag {number}"] = partial(backend.send, [ones()], 0, number)
    return calls


def numbers_at_the_limits(rank):
    """Return the wrong calls that were not refused, and a sum that comes after them."""
    accepted = []
    for text, call in wrong_calls().items() if rank == 1 else ():
        try:
            call()
        except (ValueError, TypeError):  # pybind11 raises the second if no int can be that large
            continue
        accepted.append(text)
    total = ones()
    dist.all_reduce(total)
    return accepted, float(total)


CLONE3 = 435  # the system call that starts a thread, and no process


def without_threads(rank, start):
    """Return the error of rank 1, which cannot start a thread, and that of the other's barrier."""
    if rank == 1:
        refuse(CLONE3, errno.EAGAIN)
        return error_of(start)
    start()
    return error_of(dist.barrier)


def assert_names_the_shortage(answers, backend):
    for rank, (kind, text, _) in enumerate(answers):
        assert kind == "Dist" + ("StoreError" if rank else "BackendError"), text
        assert f"Backend {backend}: " in text and 'group "' in text, text
        assert "rank 1 cannot start a thread: Resource temporarily unavailable (see" in text, text


def timeouts_at_the_limits(rank):
    """Return the errors of timeouts that no group can have, and whether the others work."""
    refused = []
    for timeout in (timedelta(0), timedelta(seconds=-5), timedelta.max):
        refused.append(error_of(dist.set_timeout, timeout)[:2])
        refused.append(error_of(dist.new_group, timeout=timeout)[:2])
    work = None
    for timeout in (timedelta(days=109_500), timedelta(days=100_000_000)):
        dist.set_timeout(timeout)
        dist.barrier(dist.new_group(timeout=timeout))
        work = dist.barrier(async_op=True)
        # PyTorch takes the second for a negative time, and that for none.
        work.wait(timeout if rank else timedelta.max)
    return refused, work.is_completed()


def assert_timeouts_are_right(answers):
    for refused, completed in answers:
        assert completed
        for kind, text in refused:
            assert kind == "ValueError" and "must be from 1 ms to 292,000 years, got" in text, text


def polls(rank):
    """Return the values of an all_reduce and a message, awaited by is_completed() alone."""
    if rank == 1:
        client().wait(["polling"])
    total, got = ones(), torch.zeros(1)
    works = [dist.all_reduce(total, async_op=True)]
    works.append(dist.irecv(got, 1) if rank == 0 else dist.isend(ones() * 7, 0))
    if rank == 0:
        assert not works[0].is_completed()
        client().set("polling", "")
    deadline = time.monotonic() + 300
    while not all(work.is_completed() for work in works):
        assert time.monotonic() < deadline, [work.is_completed() for work in works]
    return float(total), float(got) if rank == 0 else 7.0
