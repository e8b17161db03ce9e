"""Ranks that call operations of `simccl`, and compare with gloo on the CPU: one JSON line.

Beside these, the samples of gallery/accelerators print what each kind of call returns.
"""

import itertools
import json
import os
import sys
from datetime import timedelta

import stream_collectives
import torch
import torch.distributed as dist
from c10d_conformance.inputs import LAYOUTS, is_meaningless
from c10d_conformance.operations import OPERATIONS, REDUCING, Setting, perform
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


def numbers(where, count=4):
    return torch.arange(1.0, count + 1).add(10 * rank).to(where)


def uneven_all_to_all(where):
    sizes = [[i + 2 * j for j in range(size)] for i in range(size)]
    columns = [row[rank] for row in sizes]
    output = torch.zeros(sum(columns), 3, device=where)
    inputs = numbers(where, 3 * sum(sizes[rank])).view(-1, 3)
    dist.all_to_all_single(output, inputs, columns, sizes[rank])
    return output


def messages(where):
    sends = [dist.isend(numbers(where) * tag, (rank + 1) % size, tag=tag) for tag in range(3)]
    received = [torch.zeros(4, device=where) for _ in range(3)]
    for tag in (2, 0, 1):
        dist.recv(received[tag], (rank - 1) % size, tag=tag)
    for send in sends:
        send.wait()
    return received


def any_source(where):
    send = dist.isend(numbers(where), (rank + 1) % size, tag=7)
    source = dist.recv(tensor := torch.zeros(4, device=where), tag=7)
    send.wait()
    return [tensor, torch.tensor(source)]


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


def split(where):
    if where.type == "cpu":
        return numbers(where)
    backend = dist.group.WORLD._get_backend(device)
    child = backend.split(dist.HashStore(), [rank], options) if rank == 0 else None
    tensor = numbers(where)
    if child:
        child.allreduce([tensor]).wait()
    return tensor


def same(call):
    ours, theirs = (call(where) for where in (device, torch.device("cpu")))
    if isinstance(ours, torch.Tensor):
        ours, theirs = [ours], [theirs]
    return all(torch.equal(a.cpu(), b) for a, b in zip(ours, theirs, strict=True))


def perform_operations_of_the_suite():
    """Call each operation with several dtypes, reductions and layouts; raise Wrong if it errs."""
    dtypes = (torch.float, torch.half, torch.double, torch.int8, torch.long, torch.cfloat)
    ops = (ReduceOp.SUM, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.AVG)
    for operation, dtype, layout in itertools.product(OPERATIONS, dtypes, LAYOUTS):
        for op in ops if operation in REDUCING else ops[:1]:
            if not is_meaningless(dtype, op):
                options = {"op": op, "layout": layout, "root": 1, "ranks": (0, 1), "me": rank}
                perform(Setting(operation, dtype, device=device, **options))


perform_operations_of_the_suite()
calls = [uneven_all_to_all, messages, any_source, batch_behind_messages, split]
print(json.dumps({call.__name__: same(call) for call in calls}))
sys.stdout.flush()
dist.barrier(device_ids=[device.index])
dist.destroy_process_group()
