"""Inputs that hypothesis draws, each run by all ranks: see search.py.

An example is plain data, because it goes to other processes. It is the case's name as text; `kind`
tells bugs apart, and `program` is what reproduces one. Strategies import hypothesis themselves: the
ranks have no need of it.
"""

import dataclasses
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

from c10d_conformance import inputs
from c10d_conformance.inputs import DTYPES, NARROW, OPS, GuardedTensor, Layout, compare
from c10d_conformance.operations import (
    OPERATIONS,
    REDUCING,
    ROOTED,
    Call,
    Setting,
    finish,
    in_threads,
    op_name,
    perform,
    total,
    wait_all,
)
from c10d_conformance.rank import Rank, Wrong, error_of, require
from c10d_conformance.registry import check
from c10d_conformance.settings import Settings
from c10d_conformance.verdicts import ABSENT

# These take a tensor with a first dimension, which they divide.
DIVIDED = {"all_gather_single", "reduce_scatter_single"}
MODES = ["sync", "async", "future", "poll"]
PLAIN = [torch.float32, torch.int64, torch.bfloat16, torch.int16, torch.uint8]


def _bounds(dtype: torch.dtype, op: ReduceOp.RedOpType) -> tuple[int, int]:
    """Return the range of the inputs, whose reductions are exact in whatever order."""
    if dtype in (torch.bool, *NARROW):
        return 0, 2
    if op == ReduceOp.PRODUCT:
        return 1, 3
    return (0, 128) if op in inputs.BITWISE else (0, 5)


def part(
    rank: int,
    number: int,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    op: ReduceOp.RedOpType = ReduceOp.SUM,
) -> torch.Tensor:
    """Return an input of a rank; programs have the same function."""
    generator = torch.Generator().manual_seed(100 * rank + number)
    return torch.randint(*_bounds(dtype, op), shape, generator=generator).to(dtype)


PROGRAM = """\
# torchrun --nproc-per-node {size} program.py
import torch
import torch.distributed as dist
{imports}
dist.init_process_group("{backend}")
rank, size, device = dist.get_rank(), dist.get_world_size(), "{device}"


def part(rank, number, shape, dtype, low=0, high=5):
    generator = torch.Generator().manual_seed(100 * rank + number)
    return torch.randint(low, high, shape, generator=generator).to(dtype).to(device)


{body}
dist.destroy_process_group()
"""


def whole_program(settings: Settings, size: int, body: str) -> str:
    """Return a program that runs the body on each of `size` ranks."""
    imports = f"import {settings.module}\n" if settings.module else ""
    return PROGRAM.format(
        size=size,
        imports=imports,
        backend=settings.backend,
        device=settings.device,
        body=body.strip(),
    )


class Drawn(Setting):
    """A collective with equal parts."""

    def of(self, rank: int, piece: int = 0) -> torch.Tensor:
        return part(rank, piece, self.shape, self.dtype, self.op)

    @property
    def kind(self) -> str:
        """Return what the failure may be about, so that one bug does not hide another."""
        if isinstance(self.layout, Layout):
            _, stride, _ = self.layout.place(self.shape)
            if not torch.empty_strided(self.shape, stride, device="meta").is_contiguous():
                return "strided"
        if self.dtype == torch.bool:
            return "bool"
        return "poll" if self.mode == "poll" else ""

    def program(self, settings: Settings) -> str:
        return whole_program(settings, self.size, self.lines() + '\nprint(f"{rank} {output}")')

    def lines(self, group: str = "") -> str:
        """Return a program's lines for this call, whose result is `output`."""
        me = f"dist.get_rank({group})" if group else "rank"
        rows = (self.size * self.shape[0], *self.shape[1:]) if self.shape else ()
        one, joined = self._new(self.shape), self._new(rows)
        low, high = _bounds(self.dtype, self.op)
        bounds = "" if (low, high) == (0, 5) else f", {low}, {high}"
        text = f"part({{}}, {{}}, {self.shape}, {self.dtype}{bounds})"
        mine, each = text.format(me, 0), text.format(me, "n")
        outputs = f"[{one} for _ in range({self.size})]"
        tensors = f"[{one}.copy_({each}) for n in range({self.size})]"
        root, at_root = self.ranks[self.root], f"if rank == {self.ranks[self.root]} else None"
        op = f"dist.ReduceOp.{op_name(self.op)}"
        in_place = f"output = {one}.copy_({mine})"
        given = f"tensor = {one}.copy_({mine})"
        divided = f"tensor = {joined}.copy_(torch.cat([{each} for n in range({self.size})]))"
        before, call = {
            "broadcast": (in_place, f"broadcast(output, {root}"),
            "all_reduce": (in_place, f"all_reduce(output, {op}"),
            "reduce": (in_place, f"reduce(output, {root}, {op}"),
            "all_gather": (f"{given}\noutput = {outputs}", "all_gather(output, tensor"),
            "all_gather_single": (
                f"{given}\noutput = {joined}",
                "all_gather_into_tensor(output, tensor",
            ),
            "gather": (
                f"{given}\noutput = {outputs} {at_root}",
                f"gather(tensor, output, {root}",
            ),
            "scatter": (
                f"tensors = {tensors} {at_root}\noutput = {one}",
                f"scatter(output, tensors, {root}",
            ),
            "reduce_scatter": (
                f"tensors = {tensors}\noutput = {one}",
                f"reduce_scatter(output, tensors, {op}",
            ),
            "reduce_scatter_single": (
                f"{divided}\noutput = {one}",
                f"reduce_scatter_tensor(output, tensor, {op}",
            ),
        }[self.operation]
        call = f"dist.{call}{f', group={group}' if group else ''}"
        if self.mode == "sync":
            return f"{before}\n{call})"
        wait = {
            "async": "work.wait()",
            "future": "work.get_future().wait()",
            "poll": "while not work.is_completed():\n    pass",
            "later": "works.append(work)",
        }[self.mode]
        return f"{before}\nwork = {call}, async_op=True)\n{wait}"

    def _new(self, shape: tuple[int, ...]) -> str:
        """Return the expression of a tensor of zeros."""
        options = f"dtype={self.dtype}, device=device"
        if not isinstance(self.layout, Layout) or self.layout == Layout():
            return f"torch.zeros({shape}, {options})"
        length, stride, offset = self.layout.place(shape)
        return f"torch.zeros({length}, {options}).as_strided({shape}, {stride}, {offset})"


def _shapes(least: int = 0) -> Any:
    """Return small shapes and a few large ones, with at least so many dimensions."""
    from hypothesis import strategies as st

    small = st.lists(st.integers(0, 5), min_size=least, max_size=3).map(tuple)
    large = st.tuples(_counts())
    return st.one_of(small, small, large, st.tuples(st.integers(1, 5), _counts()))


def _counts() -> Any:
    """Return few elements, and up to some more than 64 KiB of the longest type have."""
    from hypothesis import strategies as st

    return st.one_of(st.integers(0, 5), st.integers(6, 5_000))


def _layouts() -> Any:
    from hypothesis import strategies as st

    any_layout = st.builds(
        Layout, st.booleans(), st.integers(1, 3), st.integers(0, 3), st.integers(0, 3)
    )
    return st.one_of(st.builds(Layout, offset=st.integers(0, 3)), any_layout)


def _collectives(operation: str) -> Callable[[int], Any]:
    """Return a function that returns the strategy of the calls of an operation."""

    def strategy(size: int) -> Any:
        from hypothesis import strategies as st

        def build(dtype, op, shape, layout, mode, root):
            if inputs.is_meaningless(dtype, op):
                op = ReduceOp.SUM
            if mode == "poll" and dtype != torch.float32:
                mode = "async"  # is_completed() says nothing of a dtype that is refused
            ranks = tuple(range(size))
            return Drawn(operation, dtype, op, shape, layout, mode, root, ranks=ranks)

        return st.builds(
            build,
            st.sampled_from(DTYPES),
            st.sampled_from(OPS) if operation in REDUCING else st.just(ReduceOp.SUM),
            _shapes(least=operation in DIVIDED),
            _layouts(),
            st.sampled_from(MODES),
            st.integers(0, size - 1) if operation in ROOTED else st.just(0),
        )

    return strategy


def _collective(operation: str) -> Callable[[Rank, Drawn], None]:
    def collective(rank: Rank, drawn: Drawn) -> None:
        perform(dataclasses.replace(drawn, me=rank.rank, device=rank.device, poll=rank.poll))

    collective.__name__ = operation
    collective.__module__ = __name__
    return collective


for _operation in OPERATIONS:
    if not _operation.startswith("all_to_all"):
        check(
            _operation,
            f"{_operation} is right for drawn dtypes, shapes, strides, roots and ways to wait.",
            f"torch.distributed.{_operation}",
            examples=_collectives(_operation),
        )(_collective(_operation))


@dataclass(frozen=True)
class Splits:
    """An all_to_all in which rank `i` sends `rows[i][j]` rows to rank `j`."""

    operation: str
    rows: tuple[tuple[int, ...], ...]
    dtype: torch.dtype
    width: tuple[int, ...]  # the shape of a row
    mode: str
    offset: int
    kind = ""

    def is_even(self, rank: int) -> bool:
        """Tell whether all that a rank sends and receives has one shape."""
        return len({*self.rows[rank], *(row[rank] for row in self.rows)}) == 1

    def __str__(self) -> str:
        width = "x".join(map(str, self.width)) or "()"
        text = f"{self.operation} {inputs.name(self.dtype)} splits {[list(x) for x in self.rows]}"
        return f"{text} of rows {width} offset {self.offset} {self.mode}"

    def part(self, one: int, other: int) -> torch.Tensor:
        """Return what a rank sends to another one."""
        return part(one, other, (self.rows[one][other], *self.width), self.dtype)

    def program(self, settings: Settings) -> str:
        size = len(self.rows)
        shape = "({}, " + "".join(f"{x}, " for x in self.width) + ")"
        new = f"torch.zeros({{}}, dtype={self.dtype}, device=device)"
        sent = f"part(rank, n, {shape.format('rows[rank][n]')}, {self.dtype})"
        body = f"rows = {[list(x) for x in self.rows]}  # [i][j]: from rank i to rank j\n"
        body += f"tensors = [{sent} for n in range(size)]\n"
        body += "received = [rows[n][rank] for n in range(size)]\n"
        end = ")" if self.mode == "sync" else ", async_op=True)"
        if self.operation == "all_to_all":
            body += f"output = [{new.format(shape.format('n'))} for n in received]\n"
            body += f"work = dist.all_to_all(output, tensors{end}\n"
        else:
            body += f"output = {new.format(shape.format('sum(received)'))}\n"
            body += "work = dist.all_to_all_single(\n"
            body += f"    output, torch.cat(tensors), received, rows[rank]{end}\n"
        body += {
            "sync": "",
            "async": "work.wait()\n",
            "future": "work.get_future().wait()\n",
        }[self.mode]
        return whole_program(settings, size, body + 'print(f"{rank} {output}")')


def _splits(operation: str) -> Callable[[int], Any]:
    def strategy(size: int) -> Any:
        from hypothesis import strategies as st

        even = _counts().map(lambda count: ((count,) * size,) * size)
        row = st.tuples(*[_counts()] * size)
        every = st.builds(
            Splits,
            st.just(operation),
            st.one_of(even, st.tuples(*[row] * size)),
            st.sampled_from(DTYPES),
            st.lists(st.integers(0, 3), max_size=2).map(tuple),
            st.sampled_from(MODES[:3]),
            st.integers(0, 3),
        )
        if operation == "all_to_all_single":
            return every
        # A backend may refuse tensors of different sizes, but then on every rank.
        return every.filter(lambda splits: len({splits.is_even(r) for r in range(size)}) == 1)

    return strategy


def _exchange(rank: Rank, splits: Splits) -> None:
    me, everyone = rank.rank, range(rank.size)
    layout = Layout(offset=splits.offset)
    contents = [splits.part(me, other) for other in everyone]
    expected = [splits.part(other, me) for other in everyone]
    if splits.operation == "all_to_all_single":
        contents, expected = [_joined(contents)], [_joined(expected)]
    tensors = [GuardedTensor(x, layout, rank.device) for x in contents]
    outputs = [GuardedTensor(_other(x), layout, rank.device) for x in expected]

    def run(async_op: bool) -> Any:
        if splits.operation == "all_to_all":
            return dist.all_to_all(
                [x.tensor for x in outputs], [x.tensor for x in tensors], async_op=async_op
            )
        received = [splits.rows[other][me] for other in everyone]
        return dist.all_to_all_single(
            outputs[0].tensor, tensors[0].tensor, received, list(splits.rows[me]), async_op=async_op
        )

    finish(run, splits.mode)
    for what, areas, values in (("output", outputs, expected), ("input", tensors, contents)):
        for number, (area, content) in enumerate(zip(areas, values, strict=True)):
            area.check(content, f"{what} {number}")


def _joined(parts: list[torch.Tensor]) -> torch.Tensor:
    """Return the concatenation, also of types for which PyTorch has none."""
    shape = sum(len(x) for x in parts), *parts[0].shape[1:]
    raw = torch.cat([x.flatten().view(torch.uint8) for x in parts])
    return raw.view(parts[0].dtype).reshape(shape)


def _other(content: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same shape with other bytes, which are valid bools."""
    raw = content.flatten().view(torch.uint8)
    return (raw ^ 1).view(content.dtype).reshape(content.shape)


for _operation in ("all_to_all", "all_to_all_single"):

    def _function(rank: Rank, splits: Splits) -> None:
        _exchange(rank, splits)

    _function.__name__ = _operation
    check(
        _operation,
        f"{_operation} is right for drawn splits, dtypes, rows and ways to wait.",
        f"torch.distributed.{_operation}",
        examples=_splits(_operation),
    )(_function)


@dataclass(frozen=True)
class Message:
    """One message of a drawn exchange."""

    source: int
    target: int
    tag: int
    count: int
    dtype: torch.dtype

    @property
    def key(self) -> tuple[int, int, int]:
        """Return what a receiver tells messages apart by."""
        return self.source, self.target, self.tag

    def __str__(self) -> str:
        return (
            f"{self.source} to {self.target} tag {self.tag}: {self.count} {inputs.name(self.dtype)}"
        )


@dataclass(frozen=True)
class Messages:
    """Messages in the order of their sends, and the order in which they are received."""

    sent: tuple[Message, ...]
    order: tuple[int, ...]
    receives_first: bool
    kind = ""

    @property
    def received(self) -> list[int]:
        """Return the numbers of the messages as they are received: those of one key in order."""
        of_key: dict[tuple[int, int, int], list[int]] = {}
        for number, message in enumerate(self.sent):
            of_key.setdefault(message.key, []).append(number)
        return [of_key[self.sent[number].key].pop(0) for number in self.order]

    def calls(self, rank: int) -> list[tuple[str, int]]:
        """Return isend or irecv, and the number of the message, for each call of a rank."""
        sends = [("isend", n) for n, x in enumerate(self.sent) if x.source == rank]
        receives = [("irecv", n) for n in self.received if self.sent[n].target == rank]
        return receives + sends if self.receives_first else sends + receives

    def __str__(self) -> str:
        first = "receives first" if self.receives_first else "sends first"
        sent = "; ".join(map(str, self.sent))
        return f"messages {sent}; received in the order {self.received}, {first}"

    def program(self, settings: Settings) -> str:
        size = max(max(x.source, x.target) for x in self.sent) + 1
        body = "works, outputs = [], []\n"
        for rank in range(size):
            lines = ""
            for call, number in self.calls(rank):
                x = self.sent[number]
                if call == "isend":
                    lines += f"tensor = part({x.source}, {number}, ({x.count},), {x.dtype})\n"
                    lines += f"works.append(dist.isend(tensor, {x.target}, tag={x.tag}))\n"
                else:
                    lines += f"outputs.append(torch.zeros({x.count}, dtype={x.dtype}, "
                    lines += "device=device))\n"
                    lines += f"works.append(dist.irecv(outputs[-1], {x.source}, tag={x.tag}))\n"
            if lines:
                body += f"if rank == {rank}:\n{textwrap.indent(lines, '    ')}"
        body += 'for work in works:\n    work.wait()\nprint(f"{rank} {outputs}")'
        return whole_program(settings, size, body)


def _messages(size: int) -> Any:
    from hypothesis import strategies as st

    pairs = [(one, other) for one in range(size) for other in range(size) if one != other]
    message = st.builds(
        lambda pair, *rest: Message(*pair, *rest),
        st.sampled_from(pairs),
        st.integers(0, 3),
        _counts(),
        st.sampled_from(PLAIN),
    )
    return st.lists(message, min_size=1, max_size=8).flatmap(
        lambda sent: st.builds(
            Messages,
            st.just(tuple(sent)),
            st.permutations(range(len(sent))).map(tuple),
            st.booleans(),
        )
    )


@check(
    "tags",
    "Messages of drawn tags, lengths and dtypes arrive, in whatever order they are received.",
    "torch.distributed.isend",
    examples=_messages,
)
def messages(rank: Rank, messages: Messages) -> str | None:
    works, outputs = [], []
    for call, number in messages.calls(rank.rank):
        x = messages.sent[number]
        content = part(x.source, number, (x.count,), x.dtype)
        if call == "isend":
            works.append(dist.isend(content.to(rank.device), x.target, tag=x.tag))
        else:
            outputs.append((number, GuardedTensor(_other(content), Layout(), rank.device), content))
            works.append(dist.irecv(outputs[-1][1].tensor, x.source, tag=x.tag))
    wait_all(works)
    for number, area, content in outputs:
        area.check(content, f"message {number}")
    return None if works else ABSENT


@dataclass(frozen=True)
class Step:
    """One call of a sequence, in one of its groups."""

    group: int
    call: Drawn

    def __str__(self) -> str:
        return f"group {self.group}: {self.call}"


@dataclass(frozen=True)
class Sequence:
    """Calls in several groups: those of group `i` are made by thread `i % threads`, in order."""

    groups: tuple[tuple[int, ...], ...]  # the ranks of each
    threads: int
    steps: tuple[Step, ...]
    kind = ""

    def of(self, thread: int, rank: int) -> list[Step]:
        """Return the calls that a thread of a rank makes."""
        mine = [x for x in self.steps if x.group % self.threads == thread]
        return [x for x in mine if rank in self.groups[x.group]]

    def __str__(self) -> str:
        groups = ", ".join("-".join(map(str, ranks)) for ranks in self.groups)
        return f"{self.threads} threads; groups {groups}; " + "; ".join(map(str, self.steps))

    def program(self, settings: Settings) -> str:
        size = max(max(ranks) for ranks in self.groups) + 1
        body = "import threading\n\n"
        body += f"members = {[list(ranks) for ranks in self.groups]}\n"
        body += "groups = [dist.new_group(ranks) for ranks in members]\n\n\n"
        for thread in range(self.threads):
            body += f"def thread_{thread}():\n    works, outputs = [], []\n"
            for number, step in enumerate(self.steps):
                if step.group % self.threads == thread:
                    lines = step.call.lines(f"groups[{step.group}]")
                    lines += f"\noutputs.append(({number}, output))\n"
                    body += f"    if rank in members[{step.group}]:\n"
                    body += textwrap.indent(lines, " " * 8)
            body += "    for work in works:\n        work.wait()\n"
            body += "    for number, output in outputs:\n"
            body += '        print(f"{rank} {number} {output}")\n\n\n'
        names = ", ".join(f"thread_{thread}" for thread in range(self.threads))
        body += f"threads = [threading.Thread(target=x) for x in ({names},)]\n"
        body += "for thread in threads:\n    thread.start()\n"
        body += "for thread in threads:\n    thread.join()"
        return whole_program(settings, size, body)


def _sequences(size: int) -> Any:
    from hypothesis import strategies as st

    everyone = tuple(range(size))
    # Each of at least two ranks, because a rank alone shows no order.
    some = st.sets(st.sampled_from(everyone), min_size=2).map(lambda x: tuple(sorted(x)))
    groups = st.lists(st.one_of(st.just(everyone), some), min_size=1, max_size=3).map(tuple)
    operations = [x for x in OPERATIONS if not x.startswith("all_to_all")]

    def steps(groups: tuple[tuple[int, ...], ...]) -> Any:
        def step(number, operation, dtype, count, mode, root):
            ranks = groups[number]
            call = Drawn(operation, dtype, shape=(count,), mode=mode, root=root % len(ranks))
            return Step(number, dataclasses.replace(call, ranks=ranks))

        one = st.builds(
            step,
            st.integers(0, len(groups) - 1),
            st.sampled_from(operations),
            st.sampled_from(PLAIN[:3]),
            _counts(),
            st.sampled_from(["sync", "later"]),
            st.integers(0, size - 1),
        )
        return st.builds(
            Sequence,
            st.just(groups),
            st.integers(1, 2),
            st.lists(one, min_size=1, max_size=10).map(tuple),
        )

    return groups.flatmap(steps)


@check(
    "concurrent",
    "Drawn sequences of collectives in several groups, by one thread or two, are right.",
    "torch.distributed.new_group",
    examples=_sequences,
)
def sequences(rank: Rank, sequence: Sequence) -> None:
    groups = [rank.new_group(ranks) for ranks in sequence.groups]
    mistakes: list[Wrong] = []

    def verify(call: Call) -> None:
        try:
            call.check()
        except Wrong as mistake:
            mistakes.append(mistake)  # and go on: the other ranks wait for the next call

    def run(thread: int) -> None:
        later = []
        with rank.own_stream():
            for step in sequence.of(thread, rank.rank):
                ranks = sequence.groups[step.group]
                setting = dataclasses.replace(
                    step.call,
                    group=groups[step.group],
                    me=ranks.index(rank.rank),
                    device=rank.device,
                )
                call = OPERATIONS[setting.operation](setting)
                if setting.mode == "sync":
                    call.run(False)
                    verify(call)
                else:
                    later.append((call.run(True), call))
            for work, call in later:
                work.wait()
                verify(call)

    try:
        in_threads(rank, *(partial(run, thread) for thread in range(sequence.threads)))
    finally:
        rank.meet()
    for group, ranks in zip(groups, sequence.groups, strict=True):
        if rank.rank in ranks:
            dist.destroy_process_group(group)
    if mistakes:
        raise mistakes[0]


@dataclass(frozen=True)
class Limit:
    """A call with an argument near the limit of its type, as a program's lines."""

    operation: str
    lines: str
    is_error: bool  # or may be right: then `output` is what `expected` is
    size: int

    @property
    def kind(self) -> str:
        return self.operation

    def __str__(self) -> str:
        return "; ".join(self.lines.splitlines())

    def program(self, settings: Settings) -> str:
        imports = "from datetime import timedelta\n\n" if "timedelta" in self.lines else ""
        return whole_program(settings, self.size, imports + self.lines)


# Around the limits of 8, 16, 32 and 64 bits, and an eighth to a half of the last one, because bytes
# are counted, too. The first ones are the simplest.
_NEAR = {2**x + y for x in (8, 16, 31, 32, 61, 62, 63) for y in (-1, 0, 1)}
EDGES = [-1, *sorted({x for y in _NEAR for x in (y, -y) if -(2**63) <= x < 2**63}, key=abs)]
ROWS = 4  # of the tensors for each rank
# Days around those after which milliseconds do not fit into 32 bits any more; those after which
# nanoseconds do not fit into 64 bits, although microseconds do, which Python's times become in C++.
DAYS = [24, 25, 49, 50, 365, 36_500]
CENTURIES = [106_751, 106_752, 109_500, 1_000_000, 106_000_000]


def _limits(size: int) -> Any:
    from hypothesis import strategies as st

    edge, rows = st.sampled_from(EDGES), size * ROWS

    def split(numbers, bits, order):
        """Return splits that do not fit, although a sum that overflows may say that they do."""
        if bits:
            last = (rows - sum(numbers[:-1])) % 2**bits
            numbers = [*numbers[:-1], last - 2**64 if last >= 2**63 else last]
        if min(numbers) >= 0 and sum(numbers) == rows:
            numbers[0] = -1
        return [numbers[place] for place in order]

    bad_splits = st.builds(
        split,
        st.lists(st.one_of(edge, st.integers(0, 5)), min_size=size, max_size=size),
        st.sampled_from([0, 32, 61, 64]),
        st.permutations(range(size)),
    )

    def splits(sent, received, dtype):
        even = [ROWS] * size
        new = f"torch.ones({rows}, 2, dtype={dtype}, device=device)"
        lines = f"sending, receiving = {sent or even}, {received or even}\n"
        lines += f"dist.all_to_all_single({new}, {new}, receiving, sending)"
        return Limit("all_to_all_single", lines, True, size)

    def peer(operation, number):
        lines = "tensor = torch.ones(4, device=device)\n"
        if operation == "reduce":
            lines += f"options = dist.ReduceOptions()\noptions.rootRank = {number}\n"
            lines += "dist.group.WORLD.reduce([tensor], options).wait()"
        elif operation == "broadcast":
            lines += f"dist.group.WORLD.broadcast(tensor, {number}).wait()"
        else:
            lines += f"dist.group.WORLD.{operation}([tensor], {number}, 0).wait()"
        return Limit(operation, lines, True, size)

    def tag(number):
        lines = "expected = torch.ones(4)\n"
        lines += "if rank < 2:\n    output = torch.full((4,), float(1 - rank), device=device)\n"
        lines += f"if rank == 0:\n    dist.send(output, 1, tag={number})\n"
        lines += f"if rank == 1:\n    dist.recv(output, 0, tag={number})"
        return Limit("send", lines, False, size)

    def wait(days):
        lines = "output, expected = torch.ones(4, device=device), torch.full((4,), float(size))\n"
        lines += "work = dist.all_reduce(output, async_op=True)\n"
        lines += f"work.wait(timedelta(days={days}))"
        return Limit("wait", lines, False, size)

    def group(days):
        lines = f"group = dist.new_group(timeout=timedelta(days={days}))\n"
        lines += "output, expected = torch.ones(4, device=device), torch.full((4,), float(size))\n"
        lines += "dist.all_reduce(output, group=group)"
        return Limit("new_group", lines, False, size)

    def nothing(call, columns, dtype):
        operation, arguments = call
        new = f"torch.zeros(0, {columns}, dtype={dtype}, device=device)"
        lines = f"tensor, output, expected = {new}, {new}, {new}\n"
        return Limit(operation, f"{lines}dist.{operation}({arguments})", False, size)

    without = [
        ("all_reduce", "output"),
        ("broadcast", "output, 0"),
        ("all_gather", "[output] * size, tensor"),
        ("all_gather_into_tensor", "output, tensor"),
        ("reduce_scatter_tensor", "output, tensor"),
        ("all_to_all_single", "output, tensor"),
    ]
    dtypes = st.sampled_from(PLAIN)
    columns = edge.filter(lambda number: 0 < number < 2**62)
    outside = edge.filter(lambda number: not 0 <= number < size)
    return st.one_of(
        st.builds(splits, bad_splits, st.none(), dtypes),
        st.builds(splits, st.none(), bad_splits, dtypes),
        st.builds(splits, bad_splits, bad_splits, dtypes),
        st.builds(peer, st.sampled_from(["broadcast", "reduce", "send", "recv"]), outside),
        st.builds(tag, edge),
        # Not centuries: wait() of PyTorch's own class then spins for ever.
        st.builds(wait, st.sampled_from(DAYS)),
        st.builds(group, st.sampled_from(DAYS + CENTURIES)),
        st.builds(nothing, st.sampled_from(without), columns, dtypes),
    )


@check(
    "bad_input",
    "An argument near the limit of its type is an error on every rank, or has its meaning.",
    "torch.distributed (arguments of the collectives)",
    examples=_limits,
)
def limits(rank: Rank, limit: Limit) -> None:
    rank.operation = limit.operation
    names: dict[str, Any] = {"dist": dist, "torch": torch, "rank": rank.rank, "size": rank.size}
    names |= {"device": rank.device, "timedelta": timedelta}
    error, _ = error_of(exec, limit.lines, names)
    is_absent = error is None and not limit.is_error and "output" not in names
    answers = rank.share("absent" if is_absent else f"raised {error}" if error else "returned")
    # Every rank comes to the same answer, so none waits for another one below.
    mixed = [x for x in answers if x.startswith("raised")]
    require("raised " not in mixed, "an error has no text")
    if "returned" in answers:
        require(not limit.is_error, "the call raised nothing")
        require(not mixed, "some ranks return and others raise: " + ", ".join(mixed))
    if "group" in names:
        dist.destroy_process_group(names["group"])
    total(rank)  # the group works as before
    if "output" in names and not error:
        compare(names["output"], names["expected"])
