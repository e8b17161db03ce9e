"""Messages that do not fit together, or that are coalesced."""

import os
import re
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from ranks import error_of, in_ranks, memory_limit, run


@in_ranks(2)
def test_coalesced_messages_end_with_the_first_one(rank):
    tensor = torch.ones(1)
    if rank == 0:
        received, world, device = torch.zeros(1), dist.group.WORLD, torch.device("cpu")
        world._start_coalescing(device)
        world.recv([received], 1, 0)
        world.send([tensor], 1, 0)
        world._end_coalescing(device).wait()
        assert float(received) == 1
    else:
        dist.recv(tensor, 0)
        time.sleep(0.2)
        dist.send(tensor, 0)
    dist.barrier()


def receive_the_last(rank):
    numbers, count = torch.ones(1 << 18), 80
    works = [dist.isend(numbers, 1, tag=tag) for tag in range(count) if rank == 0]
    text = ""
    if rank == 1:
        work = dist.irecv(numbers, 0, tag=count - 1)
        text = error_of(work.wait, timedelta(seconds=3))[1]
    dist.barrier()
    return text, len(works)


def test_an_error_says_that_no_more_messages_are_kept():
    text = run(receive_the_last, 2)[1][0]
    assert re.search(r"waits for Rank 0, of which \d{8} bytes of messages without a receive", text)


@in_ranks(3)
def test_receives_of_each_kind_wait_at_once(rank):
    """Of a rank, and of any; and messages that are kept until their receive comes."""
    for _ in range(2):
        tags = range(200)
        if rank > 0:
            for tag in reversed(tags):
                dist.isend(torch.tensor([rank, tag]), 0, tag=tag)
            for tag in tags[rank - 1 :: 2]:
                dist.isend(torch.tensor([rank, tag]), 0, tag=1000 + tag)
        else:
            pairs = [(source, tag) for tag in tags for source in (1, 2)]
            named = [torch.zeros(2, dtype=torch.int64) for _ in pairs]
            of_any = [torch.zeros(2, dtype=torch.int64) for _ in tags]
            works = [dist.irecv(of_any[tag], tag=1000 + tag) for tag in tags]
            for (source, tag), tensor in zip(pairs, named, strict=True):
                works.append(dist.irecv(tensor, source, tag=tag))
            for work in works:
                work.wait()
            assert [tuple(tensor.tolist()) for tensor in named] == pairs
            assert [tensor.tolist() for tensor in of_any] == [[1 + tag % 2, tag] for tag in tags]
        dist.barrier()


def keeps_too_much(rank):
    """Rank 0 waits for another message, and has no memory to keep this one in."""
    if rank == 1:
        return error_of(dist.send, torch.ones(2**28, dtype=torch.uint8), 0, tag=1)
    with memory_limit(2**27):
        return error_of(dist.recv, torch.ones(1), 1, tag=2)


@pytest.mark.skipif("san.so" in os.environ.get("LD_PRELOAD", ""), reason="ends the process")
def test_a_message_that_cannot_be_kept():
    for kind, text, _ in run(keeps_too_much, 2):
        assert kind == "DistBackendError"
        assert "rank 0 cannot keep a message: std::bad_alloc" in text
