"""Every collective as: how to call it, what it must write, and what it must not change."""

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

from c10d_conformance import inputs
from c10d_conformance.inputs import Laid, reduced, values
from c10d_conformance.rank import true

# Before 2.13 these had other names.
all_gather_single = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
reduce_scatter_single = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)


@dataclass
class Call:
    """One call: `run(async_op)` starts it, `check()` raises Wrong if the memory is not right."""

    run: Any
    expected: list  # (what, Laid, the values it must have, tolerance)

    def check(self):
        """Compare all outputs, all inputs, and the memory around them."""
        for what, laid, content, tolerance in self.expected:
            laid.check(content, what, tolerance)


def op_name(op):
    """Return SUM for ReduceOp.SUM."""
    return str(op).rpartition(".")[2]


@dataclass
class Setting:
    """What a call is made with."""

    operation: str
    dtype: torch.dtype = torch.float32
    op: Any = ReduceOp.SUM
    shape: tuple = (63,)
    layout: str = "contiguous"
    mode: str = "sync"
    root: int = 0  # within the group
    group: Any = None
    ranks: tuple = ()  # the global ranks of the group
    me: int = 0  # this rank within the group
    seed: int = 0
    device: Any = "cpu"

    def __str__(self):
        parts = [self.operation, inputs.name(self.dtype)]
        if self.operation in REDUCING:
            parts.append(op_name(self.op))
        parts += ["shape " + ("x".join(map(str, self.shape)) or "()"), self.layout, self.mode]
        if self.operation in ROOTED:
            parts.append(f"root {self.root}")
        if self.group is not None:
            parts.append("group " + "-".join(map(str, self.ranks)))
        return " ".join(parts)

    @property
    def size(self):
        return len(self.ranks)

    def of(self, rank, piece=0):
        """Return the input of a rank of the group; `piece` tells several inputs of it apart."""
        return values(rank, self.shape, self.dtype, self.seed + 13 * piece, self.op)

    def lay(self, content):
        return Laid(content, self.layout, self.device)

    def blank(self, shape=None):
        """Return an output that has other values than any result: NaN, if the dtype has it."""
        shape = self.shape if shape is None else shape
        byte = 0xFF if self.dtype.is_floating_point or self.dtype.is_complex else 0x2B
        byte = 0 if self.dtype == torch.bool else byte
        raw = torch.full((math.prod(shape) * self.dtype.itemsize,), byte, dtype=torch.uint8)
        return self.lay(raw.view(self.dtype).reshape(shape))

    @property
    def tolerance(self):
        """Return how far a mean may be off: size is no power of two for some groups."""
        if self.op != ReduceOp.AVG or self.size in (1, 2, 4, 8):
            return None
        return 4.0 * torch.finfo(self.dtype).eps


def _broadcast(s):
    tensor = s.lay(s.of(s.me)) if s.me == s.root else s.blank()
    return Call(
        lambda async_op: dist.broadcast(tensor.tensor, s.ranks[s.root], s.group, async_op),
        [("the tensor", tensor, s.of(s.root), None)],
    )


def _all_reduce(s):
    tensor = s.lay(s.of(s.me))
    result = reduced([s.of(rank) for rank in range(s.size)], s.op)
    return Call(
        lambda async_op: dist.all_reduce(tensor.tensor, s.op, s.group, async_op),
        [("the tensor", tensor, result, s.tolerance)],
    )


def _reduce(s):
    tensor = s.lay(s.of(s.me))
    result = reduced([s.of(rank) for rank in range(s.size)], s.op)
    # What the other ranks hold afterwards is not promised.
    expected = [("the tensor at the root", tensor, result, s.tolerance)] if s.me == s.root else []
    return Call(
        lambda async_op: dist.reduce(tensor.tensor, s.ranks[s.root], s.op, s.group, async_op),
        expected,
    )


def _all_gather(s):
    tensor = s.lay(s.of(s.me))
    outputs = [s.blank() for _ in s.ranks]
    expected = [(f"the output of rank {r}", outputs[r], s.of(r), None) for r in range(s.size)]
    return Call(
        lambda async_op: dist.all_gather(
            [output.tensor for output in outputs], tensor.tensor, s.group, async_op
        ),
        [*expected, ("the input", tensor, s.of(s.me), None)],
    )


def _rows(s):
    """Return the shape of `size` inputs one behind the other."""
    return (s.size * s.shape[0], *s.shape[1:]) if s.shape else (s.size,)


def _all_gather_single(s):
    tensor = s.lay(s.of(s.me))
    output = s.blank(_rows(s))
    content = torch.cat([s.of(rank).view(torch.uint8).flatten() for rank in range(s.size)])
    content = content.view(s.dtype).reshape(_rows(s))
    return Call(
        lambda async_op: all_gather_single(
            output.tensor, tensor.tensor, group=s.group, async_op=async_op
        ),
        [("the output", output, content, None), ("the input", tensor, s.of(s.me), None)],
    )


def _gather(s):
    tensor = s.lay(s.of(s.me))
    outputs = [s.blank() for _ in s.ranks] if s.me == s.root else []
    expected = [(f"the output of rank {r}", x, s.of(r), None) for r, x in enumerate(outputs)]
    lists = [output.tensor for output in outputs] or None
    return Call(
        lambda async_op: dist.gather(tensor.tensor, lists, s.ranks[s.root], s.group, async_op),
        [*expected, ("the input", tensor, s.of(s.me), None)],
    )


def _scatter(s):
    output = s.blank()
    pieces = [s.lay(s.of(s.root, r)) for r in range(s.size)] if s.me == s.root else []
    kept = [(f"the input for rank {r}", x, s.of(s.root, r), None) for r, x in enumerate(pieces)]
    lists = [piece.tensor for piece in pieces] or None
    return Call(
        lambda async_op: dist.scatter(output.tensor, lists, s.ranks[s.root], s.group, async_op),
        [("the output", output, s.of(s.root, s.me), None), *kept],
    )


def _reduce_scatter(s):
    output = s.blank()
    pieces = [s.lay(s.of(s.me, r)) for r in range(s.size)]
    result = reduced([s.of(rank, s.me) for rank in range(s.size)], s.op)
    kept = [(f"the input for rank {r}", x, s.of(s.me, r), None) for r, x in enumerate(pieces)]
    return Call(
        lambda async_op: dist.reduce_scatter(
            output.tensor, [x.tensor for x in pieces], s.op, s.group, async_op
        ),
        [("the output", output, result, s.tolerance), *kept],
    )


def _joined(s, pieces):
    content = torch.cat([piece.contiguous().view(torch.uint8).flatten() for piece in pieces])
    return content.view(s.dtype).reshape(_rows(s))


def _reduce_scatter_single(s):
    output = s.blank()
    content = _joined(s, [s.of(s.me, r) for r in range(s.size)])
    tensor = s.lay(content)
    result = reduced([s.of(rank, s.me) for rank in range(s.size)], s.op)
    return Call(
        lambda async_op: reduce_scatter_single(
            output.tensor, tensor.tensor, s.op, s.group, async_op
        ),
        [("the output", output, result, s.tolerance), ("the input", tensor, content, None)],
    )


def _all_to_all(s):
    outputs = [s.blank() for _ in s.ranks]
    pieces = [s.lay(s.of(s.me, r)) for r in range(s.size)]
    expected = [(f"the output of rank {r}", outputs[r], s.of(r, s.me), None) for r in range(s.size)]
    kept = [(f"the input for rank {r}", x, s.of(s.me, r), None) for r, x in enumerate(pieces)]
    return Call(
        lambda async_op: dist.all_to_all(
            [x.tensor for x in outputs], [x.tensor for x in pieces], s.group, async_op
        ),
        [*expected, *kept],
    )


def _all_to_all_single(s):
    output = s.blank(_rows(s))
    content = _joined(s, [s.of(s.me, r) for r in range(s.size)])
    tensor = s.lay(content)
    result = _joined(s, [s.of(r, s.me) for r in range(s.size)])
    return Call(
        lambda async_op: dist.all_to_all_single(
            output.tensor, tensor.tensor, group=s.group, async_op=async_op
        ),
        [("the output", output, result, None), ("the input", tensor, content, None)],
    )


OPERATIONS = {
    "broadcast": _broadcast,
    "all_reduce": _all_reduce,
    "reduce": _reduce,
    "all_gather": _all_gather,
    "all_gather_single": _all_gather_single,
    "gather": _gather,
    "scatter": _scatter,
    "reduce_scatter": _reduce_scatter,
    "reduce_scatter_single": _reduce_scatter_single,
    "all_to_all": _all_to_all,
    "all_to_all_single": _all_to_all_single,
}
REDUCING = {"all_reduce", "reduce", "reduce_scatter", "reduce_scatter_single"}
ROOTED = {"broadcast", "reduce", "gather", "scatter"}


def perform(s):
    """Make one call in its mode and check everything that it promises."""
    call = OPERATIONS[s.operation](s)
    finish(call.run, s.mode)
    call.check()


def finish(run, mode):
    """Run a call and wait for it, as the mode says."""
    if mode == "sync":
        run(False)
        return
    work = run(True)
    if mode == "async":
        true(work.wait() is not False, "work.wait() returned False after a success")
    elif mode == "future":
        work.get_future().wait()
    elif mode == "poll":
        deadline = time.monotonic() + 1
        while not work.is_completed():
            true(time.monotonic() < deadline, "work.is_completed() is still False after 1 s")
            time.sleep(0.0005)
