"""Ranks that call operations of `simccl`, and compare with gloo on the CPU: one JSON line.

Beside these, the samples of gallery/accelerators print what each kind of call returns.
"""

import itertools
import json
import os
import sys
import time
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


def own_messages(where):
    """A batch may have messages of a rank to itself, which gloo does not deliver."""
    if where.type == "cpu":
        return [numbers(where), numbers(where) + 10 * ((rank - 1) % size - rank)]
    outputs = torch.zeros(2, 4, device=where)
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.irecv, outputs[0], rank),
            dist.P2POp(dist.irecv, outputs[1], (rank - 1) % size),
            dist.P2POp(dist.isend, numbers(where), (rank + 1) % size),
            dist.P2POp(dist.isend, numbers(where), rank),
        ]
    )
    for work in works:
        work.wait()
    return list(outputs)


def inference(where):
    """Tensors of inference mode, and leaves of autograd, are inputs and outputs."""
    leaf = torch.nn.Parameter(numbers(where))
    with torch.no_grad():
        dist.all_reduce(leaf)
    # The threads of gloo do not write to such tensors of the CPU.
    with torch.inference_mode() if where == device else torch.no_grad():
        total, columns = numbers(where), torch.zeros(size * 4, device=where)
        dist.all_reduce(total)
        dist.all_gather_single(columns, total * 2)
        strided = torch.zeros(4, 2, device=where).t()[1]
        received = strided if where == device else strided.clone()
        dist.broadcast(received.copy_(total + rank), 1)
        parts = list(torch.zeros(size, 4, device=where))
        dist.all_gather(parts, leaf)
        send = dist.isend(total, (rank + 1) % size)
        dist.recv(got := torch.zeros(4, device=where), (rank - 1) % size)
        send.wait()
        dist.all_reduce(leaf)
    return [x.detach().clone() for x in (leaf, total, columns, received, *parts, got)]


def nothing_from_one_rank(where):
    """Rank 0 gives nothing; then no rank does."""
    gives = [0 if rank == 0 else 2] * size
    takes = [0 if source == 0 else 2 for source in range(size)]
    dist.all_to_all_single(
        output := torch.zeros(sum(takes), 3, device=where),
        numbers(where, 3 * sum(gives)).view(-1, 3),
        takes,
        gives,
    )
    dist.all_to_all_single(nothing := torch.zeros(0, 3, device=where), torch.zeros(0, 3).to(where))
    return [output, nothing]


def no_elements(where):
    """Nothing is sent, and the shapes stay."""
    empty, both = torch.zeros(1, 0, 2, device=where), torch.zeros(size, 0, 2, device=where)
    dist.all_reduce(empty)
    dist.broadcast(empty, 0)
    dist.reduce(empty, 0)
    dist.all_gather_single(both, empty)
    dist.reduce_scatter_single(empty, both)
    dist.all_gather(parts := [torch.ones_like(empty) for _ in range(size)], empty)
    send = dist.isend(empty, (rank + 1) % size)
    dist.recv(empty, (rank - 1) % size)
    send.wait()
    dist.all_reduce(after := numbers(where))
    return [empty, both, *parts, after]


def polling(where):
    """A work is completed without a wait: of the device's, for gloo's messages are never."""
    if where.type == "cpu":
        return torch.tensor(True)
    works = [dist.isend(numbers(where), (rank + 1) % size)]
    works += [dist.irecv(numbers(where), (rank - 1) % size)]
    works += [dist.all_reduce(numbers(where), async_op=True)]
    while not all(work.is_completed() for work in works):
        time.sleep(0.001)
    return torch.tensor(True)


def threads_for_many_tags(where):
    """Tags need streams, and so threads, only while their messages are under way."""
    if where.type == "cpu":
        return torch.tensor(True)
    threads = len(os.listdir("/proc/self/task"))
    for tag in range(300):
        send = dist.isend(numbers(where), (rank + 1) % size, tag=tag)
        dist.recv(torch.zeros(4, device=where), (rank - 1) % size, tag=tag)
        send.wait()
    more = len(os.listdir("/proc/self/task")) - threads
    works = [dist.isend(numbers(where), (rank + 1) % size, tag=tag) for tag in range(50)]
    for tag in reversed(range(50)):  # in one stream, they would wait for each other
        works.append(dist.irecv(torch.zeros(4, device=where), (rank - 1) % size, tag=tag))
    for work in works:
        work.wait()
    torch.accelerator.synchronize()
    return torch.tensor(more < 20)


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
calls = [uneven_all_to_all, messages, any_source, batch_behind_messages, own_messages, inference]
calls += [nothing_from_one_rank, no_elements, polling, threads_for_many_tags, split]
print(json.dumps({call.__name__: same(call) for call in calls}))
sys.stdout.flush()
dist.barrier(device_ids=[device.index])
dist.destroy_process_group()
