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
from random_operations import Operations
from store_ranks import run
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

from tools.project.paths import EXTENSIONS, FRAME, GALLERY

HERE = Path(__file__).parent

# With each of the two ways of the engine: its thread drives, or a synchronous call does.
BOTH_WAYS = pytest.mark.parametrize("can_block", [True, False], ids=["thread", "caller"])


def play(rank, size, seed):
    """Call operations of all ranks, and of all but rank 0, in an order on which all agree."""
    groups = [dist.group.WORLD, dist.new_group(range(1, size))]
    players = [
        Operations(group, f"{seed} {number}", coalescing=True)
        for number, group in enumerate(groups)
        if rank >= number
    ]
    shared = random.Random(seed)
    for _ in range(60):
        kind, number = shared.choice(["collective", "messages"]), shared.randrange(2)
        if number < len(players):
            getattr(players[number], kind)()
    for player in players:
        player.finish()


@BOTH_WAYS
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("size", [2, 3])
def test_random_operations(size, can_block):
    run(play, size, size, f"seed {size}", can_block=can_block)


def losses(rank):
    sys.path.insert(0, str(GALLERY))
    import training_runs

    groups = dist.group.WORLD, dist.new_group(backend="gloo")
    features = training_runs.ddp, training_runs.fsdp2
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


@pytest.mark.parametrize("transport", ["store_transport", "transport"], ids=["store", "shm"])
def test_a_transport_needs_no_header_of_pytorch(transport):
    [header] = [path for x in EXTENSIONS for path in x.glob(f"src/{transport}.hpp")]
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", "-x", "c++"]
    command += [f"-I{FRAME.parent}", str(header)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def alone(rank):
    """Reduce and scatter in a group of one, whose sum has one source."""
    group = [dist.new_group([0]), dist.new_group([1])][rank]
    output = torch.zeros(10)
    dist.reduce_scatter(output, [torch.full((10,), rank + 1.0)], group=group)
    return output.tolist()


@BOTH_WAYS
def test_a_sum_of_one_source_is_written(can_block):
    assert run(alone, 2, can_block=can_block) == [[1.0] * 10, [2.0] * 10]
