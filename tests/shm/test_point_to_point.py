"""Messages that do not fit together, that no rank receives, or that are coalesced."""

import os
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from ranks import error_of, memory_limit, run


def first_of_coalesced_messages(rank):
    tensor = torch.ones(1)
    if rank == 0:
        received, world, device = torch.zeros(1), dist.group.WORLD, torch.device("cpu")
        world._start_coalescing(device)
        world.recv([received], 1, 0)
        world.send([tensor], 1, 0)
        world._end_coalescing(device).wait()
        result = float(received)
    else:
        dist.recv(tensor, 0)
        time.sleep(0.2)
        dist.send(tensor, 0)
        result = None
    dist.barrier()
    return result


def test_coalesced_messages_end_with_the_first_one():
    assert run(first_of_coalesced_messages, 2)[0] == 1


def floods(rank):
    """Return how many of 20 messages of 8 MiB rank 1 can send while rank 0 wants the one behind."""
    dist.barrier()
    if rank == 0:
        last, tensor = torch.zeros(1), torch.empty(2**21)
        work = dist.irecv(last, 1, tag=2)
        error = error_of(work.wait, timedelta(seconds=2))
        for number in range(20):
            dist.recv(tensor, 1, tag=1)
            assert (tensor == number).all()
        work.wait()
        return float(last), error
    works = [dist.isend(torch.full((2**21,), float(x)), 0, tag=1) for x in range(20)]
    works.append(dist.isend(torch.ones(1), 0, tag=2))
    time.sleep(1.5)
    sent = sum(work.is_completed() for work in works)
    for work in works:
        work.wait()
    return sent


def test_messages_that_nobody_receives_are_kept_up_to_a_limit():
    (last, (_, text, _)), sent = run(floods, 2)
    assert last == 1 and "has not ended within the 2000 ms" in text
    assert 0 < sent <= 8  # of which 64 MiB are kept


def keeps_too_much(rank):
    """Rank 0 waits for another message, and has no memory to keep this one in."""
    if rank == 1:
        return error_of(dist.send, torch.ones(2**28, dtype=torch.uint8), 0, tag=1)
    with memory_limit(2**27):
        return error_of(dist.recv, torch.ones(1), 1, tag=2)


@pytest.mark.skipif("san.so" in os.environ.get("LD_PRELOAD", ""), reason="ends the process")
def test_a_message_that_cannot_be_kept():
    for kind, text, seconds in run(keeps_too_much, 2):
        assert kind == "DistBackendError" and seconds < 10
        assert "rank 0 cannot keep a message: std::bad_alloc" in text
