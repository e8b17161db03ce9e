"""Messages between two ranks arrive whole, in order, and where their tag is asked for."""

import time
from typing import Any

import torch
import torch.distributed as dist

from c10d_conformance import inputs
from c10d_conformance.inputs import (
    BORDERS,
    BUCKET,
    DTYPES,
    LAYOUTS,
    SHAPES,
    GuardedTensor,
    compare,
    values,
)
from c10d_conformance.operations import finish, total, wait_all
from c10d_conformance.rank import Rank, require, require_equal
from c10d_conformance.registry import check
from c10d_conformance.verdicts import ABSENT

SEND = "torch.distributed.send, torch.distributed.recv"
ISEND = "torch.distributed.isend, torch.distributed.irecv"


def _pairs(rank: Rank) -> list[tuple[int, int]]:
    """Return pairs of ranks so that every rank sends and receives."""
    return [(r, (r + 1) % rank.size) for r in range(rank.size)]


def transfer(
    rank: Rank,
    content: torch.Tensor,
    layout: str,
    mode: str,
    tag: int = 0,
    source: int = 0,
    target: int = 1,
) -> str | None:
    """Send a tensor from one rank to another and compare all memory on both."""
    if rank.rank == source:
        area = GuardedTensor(content, layout, rank.device)
        if mode == "sync":
            dist.send(area.tensor, target, tag=tag)
        else:
            wait_all([dist.isend(area.tensor, target, tag=tag)])
        area.check(content, "the tensor that was sent")
        return None
    if rank.rank == target:
        blank = inputs.values(9, content.shape, content.dtype, 99)
        area = GuardedTensor(blank, layout, rank.device)
        if mode == "sync":
            require_equal(dist.recv(area.tensor, source, tag=tag), source, "what recv returns")
        else:
            wait_all([dist.irecv(area.tensor, source, tag=tag)])
        area.check(content, "the tensor that was received")
        return None
    return ABSENT


@check(
    "send_recv", "recv writes what send was given, for every dtype.", SEND, quick=True, cases=True
)
def send_recv_types(rank: Rank) -> None:
    dtypes = [torch.float32, torch.int64] if rank.quick else DTYPES
    for number, dtype in enumerate(dtypes):
        for shape in ((63,), (17, 241)):
            for mode in ("sync", "async"):
                content = values(number, shape, dtype, 5)
                text = f"send {inputs.name(dtype)} shape {'x'.join(map(str, shape))} {mode}"
                rank.case(text, transfer, rank, content, "contiguous", mode)


@check(
    "send_recv",
    "send and recv take tensors of every layout, and write nothing else.",
    SEND,
    cases=True,
)
def send_recv_layouts(rank: Rank) -> None:
    for layout in LAYOUTS:
        for number, shape in enumerate([*SHAPES, BORDERS[1]]):
            for mode in ("sync", "async"):
                content = values(number, shape, torch.float32, 6)
                text = f"send float32 shape {'x'.join(map(str, shape)) or '()'} {layout} {mode}"
                rank.case(text, transfer, rank, content, layout, mode)


@check("send_recv", "Messages of every size go between every two ranks.", SEND, cases=True)
def send_recv_sizes(rank: Rank) -> None:
    for source, target in _pairs(rank):
        for shape in [*BORDERS, (1,)]:
            content = values(source, shape, torch.float32, 7)
            text = f"send float32 shape {shape[0]} from {source} to {target}"
            rank.case(text, transfer, rank, content, "contiguous", "sync", 0, source, target)
    rank.case("send int32 of 25 MiB", _long, rank)


def _long(rank: Rank) -> str | None:
    if rank.rank > 1:
        return ABSENT
    numbers = torch.arange(*BUCKET, dtype=torch.int32)
    tensor = (torch.zeros_like(numbers) if rank.rank else numbers).to(rank.device)
    (dist.recv if rank.rank else dist.send)(tensor, 1 - rank.rank)
    compare(tensor, numbers)
    return None


@check(
    "send_recv",
    "isend and irecv let two ranks send to each other at the same time.",
    ISEND,
    cases=lambda rank: [(f"isend both ways shape {n}", n) for n in (1, 1000, 300_001)],
)
def both_directions(rank: Rank, count: int) -> str | None:
    if rank.rank > 1:
        return ABSENT
    other = 1 - rank.rank
    sent = rank.full(count, float(rank.rank))
    got = rank.full(count, -1.0)
    works: list[Any] = [dist.isend(sent, other), dist.irecv(got, other)]
    for work in works:
        work.wait()
        rank.synchronize()
        require(work.is_completed(), "is_completed() is False after wait() has returned")
    compare(got, torch.full((count,), float(other)))
    return None


@check(
    "send_recv",
    "is_completed() of a message becomes True although the program does not wait.",
    "torch/csrc/distributed/c10d/Work.hpp (isCompleted)",
    cases=lambda rank: [(f"isend and irecv shape {n}, without wait()", n) for n in (1, 300_001)],
)
def completed_without_wait(rank: Rank, count: int) -> str | None:
    if rank.rank > 1:
        return ABSENT
    call = dist.irecv if rank.rank else dist.isend
    tensor = rank.full(count, float(1 - rank.rank))
    finish(lambda async_op: call(tensor, 1 - rank.rank), "poll")
    compare(tensor, torch.full((count,), 1.0))
    return None


@check(
    "tags",
    "Messages with the same tag arrive in the order in which they were sent.",
    "torch.distributed.isend (as in MPI, messages do not overtake)",
    quick=True,
    cases=lambda rank: [
        (f"100 messages shape {count}, waited {order} first", count, order == "last")
        for count in (1, 20_000)
        for order in ("first", "last")
    ],
)
def messages_stay_in_order(rank: Rank, count: int, reverse: bool) -> str | None:
    if rank.rank > 1:
        return ABSENT
    tensors = [rank.full(count, float(n if rank.rank == 0 else -1)) for n in range(100)]
    call = dist.isend if rank.rank == 0 else dist.irecv
    works = [call(tensor, 1 - rank.rank) for tensor in tensors]
    wait_all(reversed(works) if reverse else works)
    for number, tensor in enumerate(tensors):
        compare(tensor, torch.full((count,), float(number)), f"message {number}")
    return None


@check(
    "tags",
    "recv takes the message whose tag it names, whatever was sent before.",
    "torch.distributed.recv (tag: “Tag to match recv with remote send”)",
    quick=True,
    cases=lambda rank: [
        *((f"5 tags in another order, shape {count}", count) for count in (1, 1000, 40_000)),
        ("large tags", 3, 1 << 20),
        *((f"tags that are multiples of 2 ** {x}", 3, 0, 1 << x) for x in (8, 16, 24)),
    ],
)
def tags_choose_the_message(rank: Rank, count: int, first: int = 0, step: int = 1) -> str | None:
    if rank.rank > 1:
        return ABSENT
    if rank.rank == 0:
        tensors = [rank.full(count, float(number)) for number in range(5)]
        works = [dist.isend(x, 1, tag=first + step * n) for n, x in enumerate(tensors)]
        wait_all(works)
    else:
        for number in (3, 0, 4, 1, 2):
            tensor, tag = rank.full(count, -1.0), first + step * number
            require_equal(dist.recv(tensor, 0, tag=tag), 0, "what recv returns")
            compare(tensor, torch.full((count,), float(number)), f"the message with tag {tag}")
    return None


@check(
    "tags",
    "irecv is not complete before a message with its tag has come.",
    "torch/csrc/distributed/c10d/Work.hpp (isCompleted)",
    ranks=(2,),
)
def a_receive_waits_for_its_tag(rank: Rank) -> None:
    if rank.rank == 0:
        dist.send(rank.full(4, 1.0), 1, tag=1)
        rank.meet()
        dist.send(rank.full(4, 2.0), 1, tag=2)
    else:
        second, first = rank.full(4, -1.0), rank.full(4, -1.0)
        work: Any = dist.irecv(second, 0, tag=2)
        dist.recv(first, 0, tag=1)
        early = work.is_completed()
        rank.meet()
        work.wait()
        compare(first, torch.full((4,), 1.0), "the message with tag 1")
        compare(second, torch.full((4,), 2.0), "the message with tag 2")
        require(not early, "is_completed() was True before the message was sent")


@check(
    "any_source",
    "recv without a source takes a message of any rank and returns its rank.",
    "torch.distributed.recv (src: “Will receive from any process if unspecified”)",
    quick=True,
    cases=True,
)
def any_source(rank: Rank) -> None:
    rank.operation = "recv_anysource"
    for target in range(rank.size):
        for count in (1, 30_000):
            rank.case(f"any source to {target}, shape {count}", _any_source, rank, target, count)


def _any_source(
    rank: Rank, target: int, count: int, group: Any = None, ranks: list[int] | None = None
) -> None:
    ranks = ranks or list(range(rank.size))
    # A tag for each case: a rank that is ahead may send the message of the next one already.
    tag = 2 * target + (count == 1)
    if rank.rank != target:
        dist.send(rank.full(count, float(rank.rank)), target, group=group, tag=tag)
        return
    sources = []
    for _ in range(len(ranks) - 1):
        tensor = rank.full(count, -1.0)
        source = dist.recv(tensor, group=group, tag=tag)
        compare(tensor, torch.full((count,), float(source)), f"the message of rank {source}")
        sources.append(source)
    require_equal(
        sorted(sources), [r for r in ranks if r != target], "the ranks that recv returned"
    )


@check(
    "any_source",
    "irecv without a source leaves messages with another tag alone.",
    "torch.distributed.irecv (tag)",
)
def any_source_with_tags(rank: Rank) -> str | None:
    rank.operation = "recv_anysource"
    if rank.rank == 0:
        works = [dist.isend(rank.full(3, float(tag)), 1, tag=tag) for tag in (1, 2)]
        wait_all(works)
    elif rank.rank == 1:
        for tag in (2, 1):
            tensor = rank.full(3, -1.0)
            require_equal(dist.recv(tensor, tag=tag), 0, "the rank that recv returns")
            compare(tensor, torch.full((3,), float(tag)), f"the message with tag {tag}")
    else:
        return ABSENT
    return None


@check(
    "any_source",
    "recv without a source returns a global rank in a sub-group, too.",
    "torch.distributed.recv (returns the sender rank)",
    minimum=3,
)
def any_source_in_a_sub_group(rank: Rank) -> str | None:
    rank.operation = "recv_anysource"
    ranks = list(range(1, rank.size))
    group, whole = rank.new_group(ranks), rank.new_group()
    if rank.rank == 0:
        return ABSENT
    _any_source(rank, rank.size - 1, 5, group, ranks)
    # A message of another group, which was sent first, is not for the default group.
    if rank.rank == 1:
        calls = [(whole, 1.0), (None, 2.0)]
        works = [dist.isend(rank.full(5, x), rank.size - 1, where, 100) for where, x in calls]
        wait_all(works)
    elif rank.rank == rank.size - 1:
        second, first = rank.full(5, -1.0), rank.full(5, -1.0)
        sources = [dist.recv(second, None, None, 100), dist.recv(first, None, whole, 100)]
        require_equal(sources, [1, 1], "the ranks that recv returns")
        compare(second, torch.full((5,), 2.0), "the message in the default group")
        compare(first, torch.full((5,), 1.0), "the message in the new group")
    dist.destroy_process_group(group)
    return None


@check(
    "send_recv",
    "In a sub-group, send and recv name ranks by their global number.",
    "torch.distributed.send (dst: “Destination rank on global process group”)",
    minimum=3,
    cases=True,
)
def messages_in_a_sub_group(rank: Rank) -> None:
    rank.case("send in the group of all ranks but 0", _in_a_sub_group, rank)
    rank.case("two groups of the same ranks", _two_groups, rank)


def _in_a_sub_group(rank: Rank) -> str | None:
    ranks = list(range(1, rank.size))
    group = rank.new_group(ranks)
    first, last = ranks[0], ranks[-1]
    if rank.rank not in (first, last):
        return ABSENT
    content = values(3, (100,), torch.float32)
    if rank.rank == last:
        dist.send(content.to(rank.device), first, group=group)
        dist.send(content.to(rank.device), group_dst=0, group=group)
    elif rank.rank == first:
        for option in ({"src": last}, {"group_src": len(ranks) - 1}):
            tensor = rank.full(100, -9.0)
            require_equal(dist.recv(tensor, group=group, **option), last, "what recv returns")
            compare(tensor, content)
    dist.destroy_process_group(group)
    return None


def _two_groups(rank: Rank) -> None:
    """A message of one group is not taken for one of another, which was sent later."""
    group = rank.new_group()
    if rank.rank == 0:
        works = [dist.isend(rank.full(5, 1.0), 1, group), dist.isend(rank.full(5, 2.0), 1)]
        wait_all(works)
    elif rank.rank == 1:
        second, first = rank.full(5, -1.0), rank.full(5, -1.0)
        dist.recv(second, 0)
        dist.recv(first, 0, group)
    rank.meet()
    dist.destroy_process_group(group)
    if rank.rank == 1:
        compare(second, torch.full((5,), 2.0), "the message in the default group")
        compare(first, torch.full((5,), 1.0), "the message in the new group")


@check(
    "send_recv",
    "Messages and collectives of one group do not get into each other's way.",
    ISEND,
)
def messages_beside_collectives(rank: Rank) -> None:
    source, target = (rank.rank - 1) % rank.size, (rank.rank + 1) % rank.size
    got, total = rank.full(5000, -1.0), rank.full(5000, 1.0)
    receiving = dist.irecv(got, source, tag=3)
    reducing = dist.all_reduce(total, async_op=True)
    sending = dist.isend(rank.full(5000, float(rank.rank)), target, tag=3)
    barrier = dist.barrier(async_op=True)
    wait_all([sending, receiving, barrier, reducing])
    compare(got, torch.full((5000,), float(source)), "the message")
    compare(total, torch.full((5000,), float(rank.size)), "the sum")


@check("send_recv", "A message is delivered although the receiver comes late.", SEND)
def a_late_receiver(rank: Rank) -> str | None:
    if rank.rank == 0:
        tensors = [rank.full(n, 7.0) for n in (1, 100_000)]
        works: list[Any] = [dist.isend(x, 1, tag=len(x)) for x in tensors]
        for work, tensor in zip(works, tensors, strict=True):
            work.wait()
            tensor.fill_(-3.0)  # When wait() has returned, the memory is the sender's again.
    elif rank.rank == 1:
        time.sleep(0.3)
        for count in (1, 100_000):
            tensor = rank.full(count, -1.0)
            dist.recv(tensor, 0, tag=count)
            compare(tensor, torch.full((count,), 7.0))
    else:
        return ABSENT
    return None


@check(
    "batch",
    "batch_isend_irecv runs all sends and receives of its list, in a ring.",
    "torch.distributed.batch_isend_irecv",
    quick=True,
    cases=lambda rank: [
        (f"ring shape {count}, {first} first", count, first)
        for count in (1, 1000, 200_001)
        for first in ("send", "recv")
    ],
)
def batch_in_a_ring(rank: Rank, count: int, first: str) -> None:
    rank.operation = "batch_isend_irecv"
    source, target = (rank.rank - 1) % rank.size, (rank.rank + 1) % rank.size
    for step in range(3):
        got = rank.full(count, -1.0)
        batch = [
            dist.P2POp(dist.isend, rank.full(count, float(10 * step + rank.rank)), target),
            dist.P2POp(dist.irecv, got, source),
        ]
        wait_all(dist.batch_isend_irecv(batch if first == "send" else batch[::-1]))
        compare(got, torch.full((count,), float(10 * step + source)), f"step {step}")


@check(
    "batch",
    "batch_isend_irecv delivers messages of a rank to itself, where a backend can.",
    "torch.distributed.batch_isend_irecv",
    group=False,  # after a refusal the group need not work
    cases=lambda rank: [(f"to itself, shape {count}", count) for count in (1, 200_001)],
)
def batch_to_itself(rank: Rank, count: int) -> None:
    rank.operation = "batch_isend_irecv"
    rank.init()
    try:
        total(rank)
        sent = [rank.full(count, 10.0 * rank.rank + number) for number in range(2)]
        got = [rank.full(count, -1.0) for _ in sent]
        batch = [dist.P2POp(dist.isend, tensor, rank.rank) for tensor in sent]
        batch += [dist.P2POp(dist.irecv, tensor, rank.rank) for tensor in got]
        wait_all(dist.batch_isend_irecv(batch))
        for number, tensor in enumerate(got):
            compare(tensor, torch.full((count,), 10.0 * rank.rank + number), f"message {number}")
    finally:
        rank.meet()
        dist.destroy_process_group()


@check(
    "batch",
    "batch_isend_irecv keeps several messages between two ranks in order.",
    "torch.distributed.batch_isend_irecv",
)
def batch_of_several(rank: Rank) -> None:
    """Each message has its own size, so that an exchange of two is noticed at once."""
    rank.operation = "batch_isend_irecv"
    batch, expected = [], []
    for number in range(4):
        count = 100 * (number + 1)
        for other in (r for r in range(rank.size) if r != rank.rank):
            content = values(rank.rank, (count,), torch.float32, 10 * number + other)
            batch.append(dist.P2POp(dist.isend, content.to(rank.device), other))
            got = rank.full(count, -9.0)
            batch.append(dist.P2POp(dist.irecv, got, other))
            come = values(other, (count,), torch.float32, 10 * number + rank.rank)
            expected.append((f"message {number} of rank {other}", got, come))
    wait_all(dist.batch_isend_irecv(batch))
    for what, got, content in expected:
        compare(got, content, what)


@check(
    "send_recv",
    "send_object_list and recv_object_list carry Python objects.",
    "torch.distributed.send_object_list",
)
def objects_between_two_ranks(rank: Rank) -> str | None:
    content = ["text", {"a": [1, 2.5]}, None, b"\0" * 5000]
    if rank.rank == 0:
        dist.send_object_list(content, 1, device=rank.device)
    elif rank.rank == 1:
        got = [None] * 4
        require_equal(
            dist.recv_object_list(got, 0, device=rank.device), 0, "what recv_object_list returns"
        )
        require_equal(got, content, "the objects")
    else:
        return ABSENT
    return None
