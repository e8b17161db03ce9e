"""The backend `store`, and with it the frame: values, callbacks, threads."""

import os
import subprocess
import sys
import time
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from programs import polls, power_sgd
from random_operations import play
from store_ranks import run

from tools.project.paths import HEADERS, ROOT

# With each of the two ways of the engine: its thread drives, or a synchronous call does.
BOTH_WAYS = pytest.mark.parametrize("can_block", [True, False], ids=["thread", "caller"])


@BOTH_WAYS
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("size", [2, 3])
def test_random_operations(size, can_block):
    run(play, size, size, f"seed {size}", 60, can_block=can_block)


@BOTH_WAYS
def test_a_callback_waits_for_another_future(can_block):
    one, other = run(power_sgd, 2, can_block=can_block)
    assert one == other


@BOTH_WAYS
def test_a_work_ends_for_a_program_that_only_polls(can_block):
    assert run(polls, 2, can_block=can_block) == [(2.0, 7.0)] * 2


def with_torchcomms(rank):
    """Gather, make a group of one rank and split, as PyTorch does with torchcomms enabled."""
    enabled = "torch.distributed.distributed_c10d._use_torchcomms_enabled"
    with mock.patch(enabled, lambda: True, create=True):
        outputs = [torch.zeros(1), torch.zeros(1)] if rank == 0 else None
        dist.gather(torch.ones(1) + rank, outputs, dst=0)
        group = dist.new_group([1])
        if rank == 1:
            dist.barrier(group)
        with pytest.raises(AttributeError, match="get_comm"):
            dist.split_group(None, [[0, 1]])
    return outputs and [output.item() for output in outputs]


@pytest.mark.skipif(torch.__version__ < "2.15", reason="torchcomms has a flag since 2.15")
def test_torchcomms_changes_what_the_home_page_says():
    assert run(with_torchcomms, 2) == [[1.0, 2.0], None]


def many_threads(rank):
    """Let asynchronous calls, messages and callbacks of a group overlap; return the sums."""
    long = torch.ones(3_000_000)  # longer than a value of the store
    long_sum = dist.all_reduce(long, async_op=True)
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
    for work in [long_sum, *sends]:
        work.wait()
    assert (long == 2).all()
    return [future.wait() for future in futures]


@BOTH_WAYS
def test_calls_messages_and_callbacks_overlap(can_block):
    sums = [2.0 * number for number in range(40)]
    assert run(many_threads, 2, can_block=can_block) == [sums] * 2


def message_beside_long_pieces(rank):
    """Return what a collective of several pieces and a message beside it bring."""
    number = torch.full((1,), rank + 1.0)
    sent = dist.isend(number, 0, tag=1) if rank == 1 else None
    rows = torch.full((2, 1_100_000), rank + 1.0)  # one is longer than a value of the store
    output = torch.empty_like(rows)
    dist.all_to_all_single(output, rows)
    if sent:
        sent.wait()
    else:
        dist.recv(number, 1, tag=1)
    return number.item(), [row.unique().tolist() for row in output]


@BOTH_WAYS
def test_a_message_has_another_key_than_a_piece(can_block):
    pieces = [[1.0], [2.0]]
    assert run(message_beside_long_pieces, 2, can_block=can_block) == [(2.0, pieces)] * 2


def in_inference_mode(rank):
    """Return sums in tensors that only a thread in inference mode may write to."""
    with torch.inference_mode():
        tensors = [torch.full((2, 3), rank + 1.0).t() for _ in range(2)]
        dist.all_reduce(tensors[0])
        dist.all_reduce(tensors[1], async_op=True).wait()
    return [tensor.unique().tolist() for tensor in tensors]


@BOTH_WAYS
def test_tensors_of_inference_mode(can_block):
    assert run(in_inference_mode, 2, can_block=can_block) == [[[3.0], [3.0]]] * 2


def monitored_barrier_without_a_timeout(rank):
    if rank == 0:
        time.sleep(0.3)
    dist.group.WORLD.monitored_barrier()


def test_a_monitored_barrier_has_the_timeout_of_the_group():
    run(monitored_barrier_without_a_timeout, 2)


TRANSPORTS = {
    "store": HEADERS / "store/store_transport.hpp",
    "shm": ROOT / "extension/shm_collectives/src/transport.hpp",
    "mpich": ROOT / "extension/mpi_collectives/src/mpi_transport.hpp",
}


@pytest.mark.parametrize("header", TRANSPORTS.values(), ids=TRANSPORTS)
def test_a_transport_needs_no_header_of_pytorch(header):
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", "-x", "c++"]
    command += [f"-I{HEADERS}", f"-I{sys.prefix}/include", str(header)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
