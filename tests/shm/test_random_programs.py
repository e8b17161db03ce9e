"""Random programs of collectives and messages: each result must be that of plain PyTorch.

hypothesis draws the programs, the same ones every time. A failure shows the shortest program that
it finds to fail in the same way.
"""

from dataclasses import dataclass, field
from functools import cache

import pytest
import tensors as t
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import Crew
from shm_collectives import Options
from torch.distributed import ReduceOp

SIZES = (1, 2, 3, 4)
LAYOUTS = (t.contiguous, t.every_other, t.with_offset, t.transposed)
SLOT = Options().slot_bytes
COALESCED = 3  # calls that are made at once


@dataclass(frozen=True)
class Operation:
    """One line of a program: all ranks that are members call it with pieces of this shape."""

    kind: str
    members: tuple
    dtype: torch.dtype
    op: str  # the name of a ReduceOp; what does not reduce has no use for it
    shape: tuple
    root: int  # in the group; the sender of a message
    peer: int  # in the group: who receives a message
    layout: int  # of rank 0; the next rank has the next layout
    expanded: bool  # what is only read has rows that share their memory
    asynchronous: bool  # the rank waits when the program ends
    coalesced: bool


@dataclass(frozen=True)
class Program:
    size: int
    operations: list


@dataclass
class Part:
    """What one rank does in one call of an operation, and what its tensors must be then."""

    operation: Operation
    rank: int  # in the group
    group: dist.ProcessGroup
    seed: int
    expected: list = field(default_factory=list)

    @property
    def ranks(self):
        return range(len(self.operation.members))

    @property
    def is_root(self):
        return self.rank == self.operation.root

    @property
    def op(self):
        return getattr(ReduceOp, self.operation.op)

    def value(self, rank, peer=0):
        """Return the piece of a rank, or what it has for a peer."""
        rows, columns = self.operation.shape
        shared = self.operation.expanded
        count = columns if shared else rows * columns
        data = t.data(rank * max(SIZES) + peer, count, self.operation.dtype, self.seed)
        return data.expand(rows, columns) if shared else data.view(rows, columns)

    def reduced(self, peer=0):
        return t.reduced([self.value(rank, peer) for rank in self.ranks], self.op)

    def reads(self, value):
        """Return the value as a tensor that the call must not change."""
        if self.operation.expanded:
            return self._expect(value[:1].clone().expand(value.shape), value)
        return self.changes(value, value)

    def writes(self, expected):
        """Return a tensor that the call must fill with what is expected."""
        noise = t.data(-1, expected.numel(), expected.dtype, self.seed)
        return self.changes(noise.view(expected.shape), expected)

    def changes(self, value, expected):
        layout = LAYOUTS[(self.operation.layout + self.rank) % len(LAYOUTS)]
        return self._expect(layout(value.contiguous()), expected)

    def _expect(self, tensor, expected):
        self.expected.append((tensor, expected, outside(tensor)))
        return tensor

    def check(self):
        # Products of many and quotients are not exact in narrow types.
        tolerant = self.operation.op in ("PRODUCT", "AVG")
        for tensor, expected, before in self.expected:
            t.assert_same(tensor, expected, tolerant)
            assert torch.equal(outside(tensor), before), "memory beside a tensor was changed"


def outside(tensor):
    """Return the bytes of a tensor's memory that are not part of the tensor."""
    whole = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
    elements = whole.view(-1, tensor.itemsize)
    is_outside = torch.ones(len(elements), dtype=torch.bool)
    is_outside.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).fill_(False)
    return elements[is_outside]


# Each of these returns a function that makes the call, `call(async_op)`.


def all_reduce(part):
    tensor = part.changes(part.value(part.rank), part.reduced())
    return lambda async_op: dist.all_reduce(tensor, part.op, part.group, async_op)


def reduce(part):
    value, root = part.value(part.rank), part.operation.root
    tensor = part.changes(value, part.reduced() if part.is_root else value)
    return lambda async_op: dist.reduce(
        tensor, op=part.op, group=part.group, async_op=async_op, group_dst=root
    )


def broadcast(part):
    root = part.operation.root
    tensor = part.changes(part.value(part.rank), part.value(root))
    return lambda async_op: dist.broadcast(
        tensor, group=part.group, async_op=async_op, group_src=root
    )


def all_gather(part):
    mine = part.reads(part.value(part.rank))
    outputs = [part.writes(part.value(rank)) for rank in part.ranks]
    return lambda async_op: dist.all_gather(outputs, mine, part.group, async_op)


def all_gather_single(part):
    mine = part.reads(part.value(part.rank))
    output = part.writes(torch.cat([part.value(rank) for rank in part.ranks]))
    return lambda async_op: dist.all_gather_single(output, mine, part.group, async_op)


def reduce_scatter(part):
    inputs = [part.reads(part.value(part.rank, peer)) for peer in part.ranks]
    output = part.writes(part.reduced(part.rank))
    return lambda async_op: dist.reduce_scatter(output, inputs, part.op, part.group, async_op)


def reduce_scatter_single(part):
    whole = torch.cat([part.value(part.rank, peer) for peer in part.ranks])
    mine, output = part.changes(whole, whole), part.writes(part.reduced(part.rank))
    return lambda async_op: dist.reduce_scatter_single(output, mine, part.op, part.group, async_op)


def gather(part):
    mine, root = part.reads(part.value(part.rank)), part.operation.root
    outputs = [part.writes(part.value(rank)) for rank in part.ranks] if part.is_root else None
    return lambda async_op: dist.gather(
        mine, outputs, group=part.group, async_op=async_op, group_dst=root
    )


def scatter(part):
    root = part.operation.root
    inputs = [part.reads(part.value(root, peer)) for peer in part.ranks] if part.is_root else None
    output = part.writes(part.value(root, part.rank))
    return lambda async_op: dist.scatter(
        output, inputs, group=part.group, async_op=async_op, group_src=root
    )


def all_to_all(part):
    inputs = [part.reads(part.value(part.rank, peer)) for peer in part.ranks]
    outputs = [part.writes(part.value(rank, part.rank)) for rank in part.ranks]
    return lambda async_op: dist.all_to_all(outputs, inputs, part.group, async_op)


def all_to_all_single(part):
    whole = torch.cat([part.value(part.rank, peer) for peer in part.ranks])
    mine = part.changes(whole, whole)
    output = part.writes(torch.cat([part.value(rank, part.rank) for rank in part.ranks]))
    return lambda async_op: dist.all_to_all_single(
        output, mine, group=part.group, async_op=async_op
    )


def barrier(part):
    return lambda async_op: dist.barrier(part.group, async_op)


def message(part):
    root, peer, calls = part.operation.root, part.operation.peer, []
    if part.rank == peer:
        received = part.writes(part.value(root))
        calls.append(lambda: dist.irecv(received, group=part.group, group_src=root))
    if part.rank == root:
        sent = part.reads(part.value(root))
        calls.append(lambda: dist.isend(sent, group=part.group, group_dst=peer))

    def call(async_op):
        works = [call() for call in calls]
        return works if async_op else [work.wait() for work in works]

    return call


KINDS = {
    call.__name__: call
    for call in (
        *(all_reduce, reduce, broadcast, all_gather, all_gather_single, reduce_scatter),
        *(reduce_scatter_single, gather, scatter, all_to_all, all_to_all_single),
        *(barrier, message),
    )
}
CAN_COALESCE = ("all_reduce", "all_gather_single", "reduce_scatter_single")


@cache
def group_of(members):
    return dist.new_group(members, backend="shm")


def run_program(program):
    """Run a program in this rank; return what is wrong with its results.

    The rank does not raise it: all ranks are at the end of the program, and can run another.
    """
    rank, parts, works = dist.get_rank(), [], []
    for groups in subsets(program.size):
        group_of(groups)  # All ranks must create all groups, in the same order.
    for number, operation in enumerate(program.operations):
        if rank not in operation.members:
            continue
        group = group_of(operation.members)
        calls = COALESCED if operation.coalesced else 1
        mine = [
            Part(operation, operation.members.index(rank), group, calls * number + index)
            for index in range(calls)
        ]
        works += make_calls(operation, group, [KINDS[operation.kind](part) for part in mine])
        parts += mine
    for work in reversed(works):
        work.wait()
    wrong = []
    for part in parts:
        try:
            part.check()
        except AssertionError as error:
            wrong.append(f"in rank {rank}: {part.operation}: {error}")
    return wrong


def make_calls(operation, group, calls):
    """Make the calls of an operation; return the works to wait for."""
    if operation.coalesced:
        with dist._coalescing_manager(group, async_ops=operation.asynchronous) as manager:
            for call in calls:
                call(False)
        return [manager] if operation.asynchronous else []
    [call] = calls
    returned = call(operation.asynchronous)
    if not operation.asynchronous:
        return []
    return returned if isinstance(returned, list) else [returned]


def subsets(size):
    """Return the members of the groups: all ranks, and some that leave one or more out."""
    every = tuple(range(size))
    return sorted({every, every[::2], every[1:] or every}, key=len, reverse=True)


@st.composite
def operations(draw, size):
    dtype = draw(st.sampled_from(t.DTYPES))
    ops = [op.name for op in t.OPS if not t.is_refused(dtype, op)]
    if dtype in t.COMPLEX:
        ops.remove("PRODUCT")  # all_reduce and reduce of torch.distributed refuse it
    kind, members = draw(st.sampled_from(list(KINDS))), draw(st.sampled_from(subsets(size)))
    rows = draw(st.sampled_from([1, 2, 3]))
    over_a_slot = [SLOT // dtype.itemsize // rows + more for more in (-1, 0, 1, 5)]
    ranks = st.sampled_from(range(len(members)))
    return Operation(
        kind=kind,
        members=members,
        dtype=dtype,
        op=draw(st.sampled_from(ops)),
        shape=(rows, draw(st.sampled_from([0, 1, 3, 64, 1000, 4097, *over_a_slot]))),
        root=draw(ranks),
        peer=draw(ranks),
        layout=draw(st.sampled_from(range(len(LAYOUTS)))),
        expanded=draw(st.booleans()),
        asynchronous=draw(st.booleans()),
        coalesced=kind in CAN_COALESCE and draw(st.booleans()),
    )


@st.composite
def programs(draw):
    size = draw(st.sampled_from(SIZES))
    return Program(size, draw(st.lists(operations(size), min_size=1, max_size=12)))


@pytest.fixture(scope="module")
def crews():
    """The running ranks, by their number."""
    running = {}
    yield running
    for crew in running.values():
        crew.close()


# Time to find the shortest program that fails.
@pytest.mark.timeout(400)
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@settings(
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
)
@given(program=programs())
def test_random_programs(crews, program):
    if program.size not in crews:
        crews[program.size] = Crew(program.size)
    try:
        answers = crews[program.size].run(run_program, program)
    except BaseException:
        crews.pop(program.size).close()
        raise
    wrong = [text for answer in answers for text in answer]
    assert not wrong, "\n".join(wrong)
