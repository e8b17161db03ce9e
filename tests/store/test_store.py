"""The backend `store`, and with it the frame: values, training, hosts, threads."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from launcher import launch
from store_ranks import run
from torch.distributed import ReduceOp
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

from tools.project.paths import EXTENSIONS, FRAME, GALLERY

HERE = Path(__file__).parent
# With each of the two ways of the engine: its thread drives, or a synchronous call does.
BOTH_WAYS = pytest.mark.parametrize("can_block", [True, False], ids=["thread", "caller"])


def ring(sent, received, rank, size, group):
    work = dist.isend(sent, (rank + 1) % size, group=group)
    dist.recv(received, (rank - 1) % size, group=group)
    return work


def random_call(random, group, rank, size):
    """Return the number and the outputs of an operation, the same for each group."""
    dtype = random.choice([torch.float32, torch.float64, torch.int32, torch.uint8])
    op = random.choice([ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT])
    count, root = random.choice([0, 1, 7, 1000, 70_001]), random.randrange(size)
    generator = torch.Generator().manual_seed(random.randrange(1 << 30) * size + rank)
    tensors = [torch.randint(0, 4, (count,), generator=generator).to(dtype) for _ in range(size)]
    one, outs = tensors[rank], [torch.zeros(count, dtype=dtype) for _ in range(size)]
    whole, is_root = torch.cat(outs), rank == root
    how = {"group": group, "async_op": random.random() < 0.5}
    calls = [
        (lambda: dist.all_reduce(one, op, **how), [one]),
        (lambda: dist.reduce(one, root, op, **how), [one] if is_root else []),
        (lambda: dist.broadcast(one, root, **how), [one]),
        (lambda: dist.all_gather(outs, one, **how), outs),
        (lambda: dist.gather(one, outs if is_root else None, root, **how), outs),
        (lambda: dist.scatter(outs[0], tensors if is_root else None, root, **how), outs[:1]),
        (lambda: dist.reduce_scatter(outs[0], tensors, op, **how), outs[:1]),
        (lambda: dist.all_to_all_single(whole, torch.cat(tensors), **how), [whole]),
        (lambda: ring(one, outs[0], rank, size, group), outs[:1]),
    ]
    number = random.randrange(len(calls))
    call, outputs = calls[number]
    if (work := call()) is not None:
        work.wait()
    return number, outputs


def same_as_gloo(rank, size, seed):
    ours, theirs = dist.group.WORLD, dist.new_group(backend="gloo")
    for number in range(60):
        kind, outputs = random_call(random.Random(f"{seed} {number}"), ours, rank, size)
        _, expected = random_call(random.Random(f"{seed} {number}"), theirs, rank, size)
        for one, other in zip(outputs, expected, strict=True):
            assert torch.equal(one, other), f"seed {seed}, call {number}: {kind}"
    return True


@BOTH_WAYS
@pytest.mark.parametrize("size", [2, 3])
def test_random_calls_give_what_gloo_gives(size, can_block):
    seed = random.randrange(1 << 30)
    assert run(same_as_gloo, size, size, seed, can_block=can_block) == [True] * size


def losses(rank):
    sys.path.insert(0, str(GALLERY / "communicate/shared"))
    import training

    groups = dist.group.WORLD, dist.new_group(backend="gloo")
    features = training.ddp, training.fsdp2
    return [[[x.step() for _ in range(10)] for x in map(f, groups)] for f in features]


@BOTH_WAYS
def test_training_has_the_losses_of_gloo(can_block):
    for of_rank in run(losses, 2, can_block=can_block):
        for ours, theirs in of_rank:
            assert ours == theirs and ours[-1] < ours[0]


def power_sgd(rank):
    """Train with a hook whose callback waits for a future that it asks for itself."""
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    for _ in range(4):
        model(torch.ones(2, 64) + rank).square().mean().backward()
    return float(model.module.weight.grad.sum())


@BOTH_WAYS
def test_a_callback_waits_for_another_future(can_block):
    one, other = run(power_sgd, 2, can_block=can_block)
    assert one == other


def test_two_hosts():
    lines = launch(HERE / "two_hosts.py", ranks=4, nodes=2, show=False)
    expected = [f"{r // 2} 10 10 {(r + 2) % 4} {1 if r < 2 else 5}" for r in range(4)]
    assert [line.strip() for line in lines] == expected


def many_threads(rank):
    """Let asynchronous calls, messages and callbacks of a group overlap; return the sums."""
    futures, sends = [], []
    for number in range(40):
        tensor = torch.full((10,), float(number))
        future = dist.all_reduce(tensor, async_op=True).get_future()
        futures.append(future.then(lambda future: float(future.value()[0][0])))
        sends.append(dist.isend(tensor * 0 + number, 1 - rank, tag=number % 3))
        if number % 4 == 3:
            dist.barrier()
    for tag in (2, 0, 1):
        for number in range(tag, 40, 3):
            got = torch.empty(10)
            dist.recv(got, 1 - rank, tag=tag)
            assert got[0] == number
    for send in sends:
        send.wait()
    return [future.wait() for future in futures]


@BOTH_WAYS
def test_calls_messages_and_callbacks_overlap(can_block):
    sums = [2.0 * number for number in range(40)]
    assert run(many_threads, 2, can_block=can_block) == [sums] * 2


def test_the_transport_needs_no_header_of_pytorch():
    [folder] = [x for x in EXTENSIONS if x.name == "store_collectives"]
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", "-x", "c++"]
    command += [f"-I{FRAME.parent}", str(folder / "src/store_transport.hpp")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
