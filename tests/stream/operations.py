"""Ranks that call each operation of `simccl`, and compare with gloo on the CPU: one JSON line."""

import contextlib
import json
import os
import sys
from datetime import timedelta

import stream_collectives
import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("sim", rank % torch.sim.device_count())
torch.accelerator.set_device_index(device)
library = os.environ["SIMCCL_LIBRARY"]
if library != "gloo":
    __import__(f"{library}_collectives")
options = stream_collectives.Options(timedelta(seconds=30))
options.library = library
dist.init_process_group("cpu:gloo,sim:simccl", pg_options=options)


def numbers(where, count=4, dtype=torch.float):
    return torch.arange(1, count + 1).add(10 * rank).to(dtype).to(where)


def empty(where, count=4, dtype=torch.float):
    return [torch.zeros(count, dtype=dtype, device=where) for _ in range(size)]


def all_reduce(where, dtype=torch.float, op=ReduceOp.SUM):
    dist.all_reduce(tensor := numbers(where, dtype=dtype), op)
    return tensor


def with_strides(where):
    tensor = numbers(where, 6).view(2, 3)
    part = tensor.t()[1:]
    if where == device:
        dist.all_reduce(part)
    else:  # gloo takes the memory of such a tensor as if it were dense
        dist.all_reduce(whole := part.contiguous())
        part.copy_(whole)
    return tensor


def reduce(where):
    dist.reduce(tensor := numbers(where), 1)
    return tensor if rank == 1 or where == device else numbers(where)


def broadcast(where):
    dist.broadcast(tensor := numbers(where, dtype=torch.uint8), 1)
    return tensor


def all_gather(where):
    dist.all_gather(outputs := empty(where), numbers(where))
    dist.all_gather_into_tensor(output := torch.zeros(4 * size, device=where), numbers(where))
    return [*outputs, output]


def reduce_scatter(where):
    dist.reduce_scatter(output := torch.zeros(4, device=where), [numbers(where)] * size)
    other = torch.zeros(2, device=where)
    dist.reduce_scatter_tensor(other, numbers(where, 2 * size))
    return [output, other]


def gather_and_scatter(where):
    dist.gather(numbers(where), outputs := empty(where) if rank == 0 else None, 0)
    dist.scatter(output := torch.zeros(4, device=where), outputs, 0)
    return [output, *(outputs or [])]


def all_to_all(where):
    sizes = [[i + 2 * j for j in range(size)] for i in range(size)]
    output = torch.zeros(sum(row[rank] for row in sizes), 3, device=where)
    inputs = numbers(where, 3 * sum(sizes[rank])).view(-1, 3)
    columns = [row[rank] for row in sizes]
    dist.all_to_all_single(output, inputs, columns, sizes[rank])
    return output


def lists_of_all_to_all(where):
    if where.type == "cpu":  # gloo has no such call
        others = [torch.arange(1, 5).add(10 * other).float() for other in range(size)]
        return [other * (rank + 1) for other in others]
    dist.all_to_all(outputs := empty(where), [numbers(where) * (r + 1) for r in range(size)])
    return outputs


def messages(where):
    sends = [dist.isend(numbers(where) * tag, (rank + 1) % size, tag=tag) for tag in range(3)]
    received = empty(where, 4)[0], torch.zeros(4, device=where), torch.zeros(4, device=where)
    for tag in (2, 0, 1):
        dist.recv(received[tag], (rank - 1) % size, tag=tag)
    for send in sends:
        send.wait()
    return list(received)


def any_source(where):
    send = dist.isend(numbers(where), (rank + 1) % size, tag=7)
    source = dist.recv(tensor := torch.zeros(4, device=where), tag=7)
    send.wait()
    return [tensor, torch.tensor(source)]


def batch(where):
    tensor = torch.zeros(4, device=where)
    operations = [
        dist.P2POp(dist.isend, numbers(where), (rank + 1) % size),
        dist.P2POp(dist.irecv, tensor, (rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    return tensor


def batch_behind_messages(where):
    """A batch does not overtake messages of its tag, whose sizes are others."""
    outputs = torch.zeros(3, device=where), torch.zeros(4, device=where)
    target, source = (rank + 1) % size, (rank - 1) % size
    sent, gate = numbers(where, 3), torch.sim.Gate()
    late = where == device and rank == 0
    with torch.Stream(device):
        if late:
            gate.hold()
        works = [dist.isend(sent, target), dist.irecv(outputs[0], source)]
    messages = [(dist.isend, numbers(where, 4), target), (dist.irecv, outputs[1], source)]
    works += dist.batch_isend_irecv([dist.P2POp(*message) for message in messages])
    if late:
        torch.sim.settle(peers=False)
    gate.open()
    for work in works:
        work.wait()
    return list(outputs)


def coalesced(where):
    tensors = [numbers(where) * i for i in range(3)]
    if where.type == "cpu":  # gloo does not coalesce
        manager = contextlib.nullcontext()
    else:
        manager = dist._coalescing_manager(device=where, async_ops=True)
    with manager as works:
        for tensor in tensors:
            dist.all_reduce(tensor)
    if where == device:
        works.wait()
    return tensors


def future(where):
    work = dist.all_reduce(numbers(where), async_op=True)
    return work.get_future().then(lambda future: future.value()[0] + 1).wait()


def subgroup(where):
    group = dist.new_group([1], backend="simccl" if where == device else "gloo")
    tensor = numbers(where)
    if rank == 1:
        dist.all_reduce(tensor, group=group)
    return tensor


def split(where):
    if where.type == "cpu":
        return numbers(where)
    backend = dist.group.WORLD._get_backend(device)
    child = backend.split(dist.HashStore(), [rank], options) if rank == 0 else None
    tensor = numbers(where)
    if child:
        child.allreduce([tensor]).wait()
    return tensor


CALLS = [all_reduce, with_strides, reduce, broadcast, all_gather, reduce_scatter]
CALLS += [gather_and_scatter, all_to_all, lists_of_all_to_all, messages, any_source, batch]
CALLS += [batch_behind_messages, coalesced, future, subgroup, split]
KINDS = [
    (dtype, op)
    for dtype in (torch.half, torch.double, torch.int8, torch.long, torch.cfloat)
    for op in (ReduceOp.SUM, ReduceOp.MIN, ReduceOp.PRODUCT)
    if not dtype.is_complex or op == ReduceOp.SUM
]


def same(call, *arguments):
    ours, theirs = (call(where, *arguments) for where in (device, torch.device("cpu")))
    if isinstance(ours, torch.Tensor):
        ours, theirs = [ours], [theirs]
    return all(torch.equal(a.cpu(), b) for a, b in zip(ours, theirs, strict=True))


results = {call.__name__: same(call) for call in CALLS}
results["dtypes"] = all(same(all_reduce, *kind) for kind in KINDS)
average = all_reduce(device, torch.float, ReduceOp.AVG) * size
results["average"] = torch.allclose(average.cpu(), all_reduce(torch.device("cpu")))
dist.barrier(device_ids=[device.index])
print(json.dumps(results))
sys.stdout.flush()
dist.destroy_process_group()
