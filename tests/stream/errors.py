"""Ranks whose calls fail, each in a group of its own: one JSON line with the errors."""

import json
import os
import time
from datetime import timedelta

import store_collectives  # noqa: F401
import stream_collectives
import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
device = torch.device("sim", rank)
torch.accelerator.set_device_index(rank)
dist.init_process_group("gloo", device_id=None)
store = dist.distributed_c10d._get_default_store()


def new_group():
    options = stream_collectives.Options(timedelta(seconds=300))
    options.library = "store"
    return dist.new_group(backend="simccl", pg_options=options)


def ones(count=1, dtype=torch.float, device=device):
    return torch.ones(count, device=device, dtype=dtype)


def error_of(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "none"


def abort():
    group = new_group()
    if rank == 1:
        store.wait(["rank 0 has aborted"])
        return error_of(dist.all_reduce(ones(), group=group, async_op=True).wait, timedelta(0, 20))
    work = dist.all_reduce(ones(), group=group, async_op=True)
    torch.sim.settle(peers=False)
    group._get_backend(device).abort()
    torch.accelerator.synchronize()
    store.set("rank 0 has aborted", "")
    with dist.distributed_c10d._coalescing_manager(group, device):  # as PyTorch aborts groups
        group._get_backend(device).abort()
    return error_of(work.wait)


def block_current_stream():
    work = dist.all_reduce(number := ones(), group=new_group(), async_op=True)
    work.block_current_stream()
    return number.item()


def refusals():
    group = new_group()
    other = torch.device("sim", 1 - rank)
    return [
        error_of(dist.all_reduce, ones(dtype=torch.bool), group=group),
        error_of(dist.all_gather, [ones(), ones()], ones(device=other), group=group),
        error_of(dist.all_gather_into_tensor, ones(3), ones(), group=group),
        error_of(dist.all_reduce, ones().expand(3), group=group),
    ]


def refused_batch():
    """PyTorch's coalescing manager does not end a batch in which a call raises an error."""
    group, errors = new_group(), []
    wrong = [dist.P2POp(dist.isend, ones(), 1 - rank, group)]
    wrong += [dist.P2POp(dist.irecv, ones().expand(3), 1 - rank, group)]
    for messages in (wrong, [dist.P2POp(dist.isend, ones(), rank, group)]):
        errors.append(error_of(dist.batch_isend_irecv, messages))
        dist.all_reduce(number := ones(), group=group)
        errors.append(number.item())
    right = [dist.P2POp(dist.isend, ones() * rank, 1 - rank, group)]
    right += [dist.P2POp(dist.irecv, number, 1 - rank, group)]
    for work in dist.batch_isend_irecv(right):
        work.wait()
    return [*errors, number.item()]


def refused_collective():
    group = new_group()

    def batch():
        with dist.distributed_c10d._coalescing_manager(group, device):
            for output in (ones(3), ones().expand(3), ones(3)):
                dist.all_gather([output, ones(3)], ones(3), group=group)

    error = error_of(batch)
    dist.all_reduce(number := ones(), group=group)
    return [error, number.item()]


def wrong_options():
    options = stream_collectives.Options()
    options.broken = "nothing"
    broken = error_of(dist.new_group, backend="simccl", pg_options=options)
    options.broken, options.library = "", "nothing"
    return [broken, error_of(dist.new_group, backend="simccl", pg_options=options)]


def sequence_number():
    group = new_group()
    dist.all_reduce(ones(), group=group)
    dist.send(ones(), 1, group=group) if rank == 0 else dist.recv(ones(), 0, group=group)
    return group._get_sequence_number_for_group()


def longer_timeout():
    """A call may have a longer timeout than its group; the library must not end it before."""
    group = dist.new_group(backend="simccl", pg_options=stream_collectives.Options(SHORT))
    if rank == 1:
        time.sleep(5)  # longer than the library would wait by itself
    return error_of(dist.barrier, group, timeout=timedelta(seconds=300), device_ids=[rank])


def receive_without_a_send():
    dist.irecv(ones(), 1 - rank, group := new_group())
    begin = time.monotonic()
    dist.destroy_process_group(group)
    return time.monotonic() - begin


SHORT = timedelta(seconds=3)
calls = [abort, block_current_stream, refusals, refused_batch, wrong_options, sequence_number]
calls += [refused_collective, longer_timeout, receive_without_a_send]
print(json.dumps({call.__name__: call() for call in calls}))
dist.destroy_process_group()
