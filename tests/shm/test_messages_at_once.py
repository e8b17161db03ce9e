"""Messages of an idle group, which the calling thread runs alone if the other rank comes soon."""

import os
import random
import signal
import threading

import pytest
import torch
import torch.distributed as dist
from ranks import Killed, error_of, in_ranks, run

# Elements of float32: one part, a part and a bit, a full ring, more than a ring holds, and more
# than is tried at once.
SIZES = [1, 6, 7, 4096, 4097, 40_000, 200_000, 300_000]


def message(number, size):
    return torch.arange(size, dtype=torch.float32) + number


def assert_is(tensor, number):
    assert torch.equal(tensor, message(number, len(tensor)))


@in_ranks(2)
@pytest.mark.parametrize("any_source", [False, True])
def test_messages_do_not_overtake(rank, any_source):
    """Send bursts and single messages, to a rank that receives in another way than it is sent."""
    shared, own = random.Random(1), random.Random(rank)
    for number in range(0, 600, 6):
        sizes = [shared.choice(SIZES[:4] if shared.random() < 0.7 else SIZES) for _ in range(6)]
        sender, tag = shared.randrange(2), shared.randrange(2)
        waits = own.random() < 0.5  # for each message, or for all
        works, received = [], []
        for offset, size in enumerate(sizes):
            tensor = message(number + offset, size) if rank == sender else torch.zeros(size)
            if rank == sender:
                works.append(dist.isend(tensor, 1 - rank, tag=tag))
            else:
                works.append(dist.irecv(tensor, None if any_source else sender, tag=tag))
                received.append((tensor, number + offset))
            if waits:
                works.pop().wait()
        for work in works:
            work.wait()
        for tensor, expected in received:
            assert_is(tensor, expected)


@in_ranks(2)
@pytest.mark.parametrize("size", SIZES)
def test_what_has_begun_keeps_its_place(rank, size):
    """Begin two sends, and two receives, before the other rank does its part."""
    for early in (0, 1):
        works, tensors = [], []
        if rank != early:
            dist.barrier()  # The other rank has begun.
        for number in range(2):
            tensor = message(number, size) if rank == 0 else torch.zeros(size)
            call = dist.isend if rank == 0 else dist.irecv
            works.append(call(tensor, 1 - rank))
            tensors.append(tensor)
        if rank == early:
            dist.barrier()
        for work in works:
            work.wait()
        for number, tensor in enumerate(tensors):
            assert_is(tensor, number)


@in_ranks(2)
def test_a_rank_sends_to_itself(rank):
    for size in SIZES:
        sent = [dist.isend(message(number, size), rank) for number in range(2)]
        for number in range(2):
            tensor = torch.zeros(size)
            dist.irecv(tensor, rank).wait()
            assert_is(tensor, number)
        for work in sent:
            work.wait()


@in_ranks(2)
def test_a_work_that_has_ended_says_so(rank):
    """Ask the Work of a message, until one has ended before its call returned."""
    for number in range(200):
        tensor = message(number, 3) if rank == 0 else torch.zeros(3)
        call = dist.isend if rank == 0 else dist.irecv
        work = call(tensor, 1 - rank)
        work.wait()
        assert work.is_completed()
        assert work._source_rank() == 0 if rank == 1 else True
        (result,) = work.get_future().wait() if rank == 1 else (tensor,)
        assert_is(result, number)


def ping_pong(rank, ends):
    """Exchange messages, until rank 1 ends after 300 rounds, or the group is aborted."""
    tensor = torch.zeros(1)
    for number in range(10**9):
        if rank == 1 and number == 300:
            ends()
        turns = (dist.send, dist.recv) if rank == 0 else (dist.recv, dist.send)
        for turn in turns:
            turn(tensor, 1 - rank)


def until_a_rank_is_killed(rank):
    return error_of(ping_pong, rank, lambda: os.kill(os.getpid(), signal.SIGKILL))


def test_a_rank_is_killed_between_messages():
    (kind, text, _), other = run(until_a_rank_is_killed, 2, may_be_killed=True)
    assert isinstance(other, Killed)
    assert kind == "DistBackendError" and "rank 1 has died" in text


@in_ranks(2)
def test_a_thread_aborts_the_group_between_messages(rank):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    aborts = threading.Thread(target=backend.abort)
    kind, text, _ = error_of(ping_pong, rank, aborts.start)
    assert kind == "DistBackendError" and "abort" in text
    if rank == 1:
        aborts.join()
