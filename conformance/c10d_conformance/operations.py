"""Every collective as: how to call it, what it must write, and what it must not change."""

import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

from c10d_conformance import inputs
from c10d_conformance.inputs import GuardedTensor, Layout, compare, reduction, values
from c10d_conformance.rank import Rank, require
from c10d_conformance.settings import POLL

# Before 2.13 these had other names.
all_gather_single = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
reduce_scatter_single = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)


@dataclass(frozen=True)
class Expectation:
    """A tensor of a call, and the values that it must have afterwards."""

    what: str
    tensor: GuardedTensor
    content: torch.Tensor
    tolerance: float | None = None


@dataclass(frozen=True)
class Call:
    """One call: `run(async_op)` starts it, `check()` raises Wrong if the memory is not right."""

    run: Callable[[bool], Any]
    expectations: list[Expectation]

    def check(self) -> None:
        """Compare all outputs, all inputs, and the memory around them."""
        for expectation in self.expectations:
            expectation.tensor.check(expectation.content, expectation.what, expectation.tolerance)


def op_name(op: ReduceOp.RedOpType) -> str:
    """Return SUM for ReduceOp.SUM."""
    return str(op).rpartition(".")[2]


# Of tensors: those of torch.inference_mode(), and leaves of autograd.
GRAD_MODES = INFERENCE, GRADIENT = "of inference mode", "that require a gradient"


@dataclass(frozen=True)
class Setting:
    """The operation and the arguments of a call, and the place of this rank in the group."""

    operation: str
    dtype: torch.dtype = torch.float32
    op: ReduceOp.RedOpType = ReduceOp.SUM
    shape: tuple[int, ...] = (63,)
    layout: str | Layout = "contiguous"
    mode: str = "sync"
    root: int = 0  # within the group
    group: Any = None
    ranks: tuple[int, ...] = ()  # the global ranks of the group
    me: int = 0  # this rank within the group
    seed: int = 0
    device: torch.device | str = "cpu"
    grad_mode: str = ""  # one of GRAD_MODES, or the usual one
    poll: float = POLL  # seconds of the mode "poll"
    laid: list[GuardedTensor] = field(default_factory=list, compare=False)  # of a call

    def __str__(self) -> str:
        parts = [self.operation, inputs.name(self.dtype)]
        if self.operation in REDUCING:
            parts.append(op_name(self.op))
        parts += ["shape " + ("x".join(map(str, self.shape)) or "()"), str(self.layout)]
        parts += [self.grad_mode, self.mode] if self.grad_mode else [self.mode]
        if self.operation in ROOTED:
            parts.append(f"root {self.root}")
        if self.group is not None:
            parts.append("group " + "-".join(map(str, self.ranks)))
        return " ".join(parts)

    @property
    def size(self) -> int:
        return len(self.ranks)

    def of(self, rank: int, piece: int = 0) -> torch.Tensor:
        """Return the input of a rank of the group; `piece` tells several inputs of it apart."""
        return values(rank, self.shape, self.dtype, self.seed + 13 * piece, self.op)

    def lay(self, content: torch.Tensor) -> GuardedTensor:
        self.laid.append(GuardedTensor(content, self.layout, self.device))
        return self.laid[-1]

    def blank(self, shape: tuple[int, ...] | None = None) -> GuardedTensor:
        """Return an output that has other values than any result: NaN, if the dtype has it."""
        shape = self.shape if shape is None else shape
        byte = 0xFF if self.dtype.is_floating_point or self.dtype.is_complex else 0x2B
        byte = 0 if self.dtype == torch.bool else byte
        raw = torch.full((math.prod(shape) * self.dtype.itemsize,), byte, dtype=torch.uint8)
        return self.lay(raw.view(self.dtype).reshape(shape))

    @property
    def tolerance(self) -> float | None:
        """Return how far a mean may be off: size is no power of two for some groups."""
        if self.op != ReduceOp.AVG or self.size in (1, 2, 4, 8):
            return None
        return 4.0 * torch.finfo(self.dtype).eps


def for_all_ranks(rank: Rank, operation: str, **options: Any) -> Setting:
    """Return the setting of a call in the default group."""
    ranks = tuple(range(rank.size))
    return Setting(operation, ranks=ranks, me=rank.rank, device=rank.device, **options)


def _broadcast(s: Setting) -> Call:
    tensor = s.lay(s.of(s.me)) if s.me == s.root else s.blank()
    return Call(
        lambda async_op: dist.broadcast(tensor.tensor, s.ranks[s.root], s.group, async_op),
        [Expectation("the tensor", tensor, s.of(s.root))],
    )


def _all_reduce(s: Setting) -> Call:
    tensor = s.lay(s.of(s.me))
    result = reduction([s.of(rank) for rank in range(s.size)], s.op)
    return Call(
        lambda async_op: dist.all_reduce(tensor.tensor, s.op, s.group, async_op),
        [Expectation("the tensor", tensor, result, s.tolerance)],
    )


def _reduce(s: Setting) -> Call:
    tensor = s.lay(s.of(s.me))
    result = reduction([s.of(rank) for rank in range(s.size)], s.op)
    expectations = []
    if s.me == s.root:  # the tensors of the other ranks may have any values afterwards
        expectations.append(Expectation("the tensor at the root", tensor, result, s.tolerance))
    return Call(
        lambda async_op: dist.reduce(tensor.tensor, s.ranks[s.root], s.op, s.group, async_op),
        expectations,
    )


def _of_each(
    text: str, tensors: list[GuardedTensor], contents: Iterable[torch.Tensor]
) -> list[Expectation]:
    """Return the expectations of tensors for each rank; there are none away from a root."""
    pairs = enumerate(zip(tensors, contents, strict=False))
    return [Expectation(f"{text} {r}", tensor, content) for r, (tensor, content) in pairs]


def _all_gather(s: Setting) -> Call:
    tensor = s.lay(s.of(s.me))
    outputs = [s.blank() for _ in s.ranks]
    expected = _of_each("the output of rank", outputs, map(s.of, range(s.size)))
    return Call(
        lambda async_op: dist.all_gather(
            [output.tensor for output in outputs], tensor.tensor, s.group, async_op
        ),
        [*expected, Expectation("the input", tensor, s.of(s.me))],
    )


def _rows(s: Setting) -> tuple[int, ...]:
    """Return the shape of `size` inputs one behind the other."""
    return (s.size * s.shape[0], *s.shape[1:]) if s.shape else (s.size,)


def _joined(s: Setting, pieces: list[torch.Tensor]) -> torch.Tensor:
    content = torch.cat([piece.contiguous().view(torch.uint8).flatten() for piece in pieces])
    return content.view(s.dtype).reshape(_rows(s))


def _all_gather_single(s: Setting) -> Call:
    tensor = s.lay(s.of(s.me))
    output = s.blank(_rows(s))
    content = _joined(s, [s.of(rank) for rank in range(s.size)])
    return Call(
        lambda async_op: all_gather_single(
            output.tensor, tensor.tensor, group=s.group, async_op=async_op
        ),
        [Expectation("the output", output, content), Expectation("the input", tensor, s.of(s.me))],
    )


def _gather(s: Setting) -> Call:
    tensor = s.lay(s.of(s.me))
    outputs = [s.blank() for _ in s.ranks] if s.me == s.root else []
    expected = _of_each("the output of rank", outputs, map(s.of, range(s.size)))
    lists = [output.tensor for output in outputs] or None
    return Call(
        lambda async_op: dist.gather(tensor.tensor, lists, s.ranks[s.root], s.group, async_op),
        [*expected, Expectation("the input", tensor, s.of(s.me))],
    )


def _scatter(s: Setting) -> Call:
    output = s.blank()
    contents = [s.of(s.root, r) for r in range(s.size)]
    pieces = [s.lay(content) for content in contents] if s.me == s.root else []
    inputs_after = _of_each("the input for rank", pieces, contents)
    lists = [piece.tensor for piece in pieces] or None
    return Call(
        lambda async_op: dist.scatter(output.tensor, lists, s.ranks[s.root], s.group, async_op),
        [Expectation("the output", output, s.of(s.root, s.me)), *inputs_after],
    )


def _reduce_scatter(s: Setting) -> Call:
    output = s.blank()
    contents = [s.of(s.me, r) for r in range(s.size)]
    pieces = [s.lay(content) for content in contents]
    result = reduction([s.of(rank, s.me) for rank in range(s.size)], s.op)
    inputs_after = _of_each("the input for rank", pieces, contents)
    return Call(
        lambda async_op: dist.reduce_scatter(
            output.tensor, [x.tensor for x in pieces], s.op, s.group, async_op
        ),
        [Expectation("the output", output, result, s.tolerance), *inputs_after],
    )


def _reduce_scatter_single(s: Setting) -> Call:
    output = s.blank()
    content = _joined(s, [s.of(s.me, r) for r in range(s.size)])
    tensor = s.lay(content)
    result = reduction([s.of(rank, s.me) for rank in range(s.size)], s.op)
    return Call(
        lambda async_op: reduce_scatter_single(
            output.tensor, tensor.tensor, s.op, s.group, async_op
        ),
        [
            Expectation("the output", output, result, s.tolerance),
            Expectation("the input", tensor, content),
        ],
    )


def _all_to_all(s: Setting) -> Call:
    outputs = [s.blank() for _ in s.ranks]
    contents = [s.of(s.me, r) for r in range(s.size)]
    pieces = [s.lay(content) for content in contents]
    expected = _of_each("the output of rank", outputs, [s.of(r, s.me) for r in range(s.size)])
    inputs_after = _of_each("the input for rank", pieces, contents)
    return Call(
        lambda async_op: dist.all_to_all(
            [x.tensor for x in outputs], [x.tensor for x in pieces], s.group, async_op
        ),
        [*expected, *inputs_after],
    )


def _all_to_all_single(s: Setting) -> Call:
    output = s.blank(_rows(s))
    content = _joined(s, [s.of(s.me, r) for r in range(s.size)])
    tensor = s.lay(content)
    result = _joined(s, [s.of(r, s.me) for r in range(s.size)])
    return Call(
        lambda async_op: dist.all_to_all_single(
            output.tensor, tensor.tensor, group=s.group, async_op=async_op
        ),
        [Expectation("the output", output, result), Expectation("the input", tensor, content)],
    )


OPERATIONS: dict[str, Callable[[Setting], Call]] = {
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


def perform(s: Setting) -> None:
    """Make one call in its mode and check everything that it promises."""
    with torch.inference_mode(s.grad_mode == INFERENCE):
        call = OPERATIONS[s.operation](s)
        for area in s.laid:
            area.tensor.requires_grad_(s.grad_mode == GRADIENT)
        finish(call.run, s.mode, s.poll)
        call.check()


def finish(run: Callable[[bool], Any], mode: str, poll: float = POLL) -> None:
    """Run a call and wait for it, as the mode says."""
    if mode == "sync":
        run(False)
        return
    work = run(True)
    if mode == "async":
        require(work.wait() is not False, "work.wait() returned False after a success")
    elif mode == "future":
        work.get_future().wait()
    elif mode == "poll":
        deadline = time.monotonic() + poll
        while not work.is_completed():
            require(
                time.monotonic() < deadline, f"work.is_completed() is still False after {poll:g} s"
            )
            time.sleep(0.0005)


def wait_all(works: Iterable[Any]) -> None:
    """Wait for works in their order."""
    for work in works:
        work.wait()


def in_threads(rank: Rank, *functions: Callable[[], Any]) -> None:
    """Run each function in a thread of its own, and raise the first error when all have ended."""
    with ThreadPoolExecutor(len(functions), initializer=rank.make_current) as pool:
        futures = [pool.submit(function) for function in functions]
    for future in futures:
        future.result()


def total(
    rank: Rank, group: Any = None, ranks: list[int] | None = None, count: int = 100, seed: int = 0
) -> None:
    """Compare an all_reduce in a group, by default of all ranks, with the sum of the inputs."""
    ranks = list(range(rank.size)) if ranks is None else ranks
    tensor = values(rank.rank, (count,), torch.float32, seed).to(rank.device)
    dist.all_reduce(tensor, group=group)
    contents = [values(r, (count,), torch.float32, seed) for r in ranks]
    compare(tensor, reduction(contents, ReduceOp.SUM), f"the sum of ranks {ranks}")
