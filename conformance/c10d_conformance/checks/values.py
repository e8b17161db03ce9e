"""Every collective writes the values that plain PyTorch computes, and nothing else."""

import hashlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

from c10d_conformance import inputs
from c10d_conformance.inputs import (
    BORDERS,
    BUCKET,
    COMPLEX,
    DTYPES,
    LAYOUTS,
    OPS,
    SHAPES,
    GuardedTensor,
    compare,
)
from c10d_conformance.operations import (
    GRAD_MODES,
    OPERATIONS,
    REDUCING,
    ROOTED,
    finish,
    for_all_ranks,
    op_name,
    perform,
    reduce_scatter_single,
)
from c10d_conformance.rank import Rank, Wrong
from c10d_conformance.registry import check

PROMISES = {
    "broadcast": "broadcast gives every rank the tensor of the source rank.",
    "all_reduce": "all_reduce gives every rank the reduction of all tensors, in place.",
    "reduce": "reduce gives the destination rank the reduction of all tensors.",
    "all_gather": "all_gather gives every rank the tensors of all ranks, in the order of ranks.",
    "all_gather_single": "all_gather_single joins the tensors of all ranks in one tensor.",
    "gather": "gather gives the destination rank the tensors of all ranks.",
    "scatter": "scatter gives each rank its tensor from the list of the source rank.",
    "reduce_scatter": "reduce_scatter gives each rank the reduction of the tensors meant for it.",
    "reduce_scatter_single": "reduce_scatter_single gives each rank the reduction of its part.",
    "all_to_all": "all_to_all gives each rank the tensor that every other rank has for it.",
    "all_to_all_single": "all_to_all_single gives each rank its part of the tensor of every rank.",
}
# These take a tensor with a first dimension, which they divide.
_DIVIDED = {"all_gather_single", "reduce_scatter_single", "all_to_all_single"}


def run(rank: Rank, operation: str, **options: Any) -> None:
    """Run one case."""
    setting = for_all_ranks(rank, operation, **options)
    rank.case(str(setting), perform, setting)


def types(operation: str) -> Callable[[Rank], None]:
    def every_type(rank: Rank) -> None:
        dtypes = [torch.float32, torch.bfloat16, torch.int64] if rank.quick else DTYPES
        for dtype in dtypes:
            ops = [ReduceOp.SUM]
            if operation in REDUCING:
                ops = [op for op in OPS if not inputs.is_meaningless(dtype, op)]
            for op in ops:
                for shape in [(63,)] if rank.quick or op != ReduceOp.SUM else [(63,), (17, 241)]:
                    run(rank, operation, dtype=dtype, op=op, shape=shape)

    return every_type


def layouts(operation: str) -> Callable[[Rank], None]:
    def every_layout(rank: Rank) -> None:
        seed = 0
        for layout in LAYOUTS:
            for shape in SHAPES:
                if operation in _DIVIDED and not shape:
                    continue
                for mode in ("sync", "async"):
                    seed += 1
                    run(
                        rank,
                        operation,
                        layout=layout,
                        shape=shape,
                        mode=mode,
                        seed=seed,
                        root=seed % rank.size,
                    )
            for mode in ("sync", "future"):
                options = {"shape": (17, 241), "dtype": torch.int64, "mode": mode}
                run(rank, operation, layout=layout, **options)
        for grad_mode in GRAD_MODES:
            run(rank, operation, grad_mode=grad_mode, mode="async", seed=8)

    return every_layout


def sizes(operation: str) -> Callable[[Rank], None]:
    def every_size(rank: Rank) -> None:
        for shape in BORDERS:
            modes = ["sync"]
            if shape == BORDERS[0]:
                modes += ["async", "future"]
            elif shape == BORDERS[-1]:
                modes += ["future"]
            for mode in modes:
                run(rank, operation, shape=shape, mode=mode, seed=3)
        run(rank, operation, shape=BORDERS[-1], dtype=torch.uint8, seed=4)
        # A mean and a maximum, too, where a backend has another way for long tensors.
        for op in [ReduceOp.AVG, ReduceOp.MAX] if operation in REDUCING else []:
            run(rank, operation, shape=BORDERS[-1], op=op, seed=6)
        for mode in ("future", "poll"):
            for shape in [*SHAPES[:3], (3,)]:  # 3: not one element for each of 4 ranks
                run(rank, operation, shape=shape, mode=mode, seed=5)
        for shape in [(0, 3), (1, 0, 2)]:
            run(rank, operation, shape=shape, mode="async", seed=7)
        if operation in _OF_BUCKETS:
            rank.case(f"{operation} int32 of 25 MiB", _bucket, rank, _OF_BUCKETS[operation])

    return every_size


_OF_BUCKETS = {"broadcast": lambda tensor: dist.broadcast(tensor, 0), "all_reduce": dist.all_reduce}


def _bucket(rank: Rank, call: Callable[..., Any]) -> None:
    numbers = torch.arange(*BUCKET, dtype=torch.int32)
    tensor = (numbers * (rank.rank == 0)).to(rank.device)
    call(tensor)
    compare(tensor, numbers)


def roots(operation: str) -> Callable[[Rank], None]:
    def every_root(rank: Rank) -> None:
        for root in range(rank.size):
            for mode in ("sync", "async"):
                for shape in ((63,), (17, 241), BORDERS[0]):
                    run(rank, operation, root=root, shape=shape, mode=mode, seed=root)

    return every_root


for _operation in OPERATIONS:
    _kinds = {"types": types, "layouts": layouts, "sizes": sizes}
    if _operation in ROOTED:
        _kinds["roots"] = roots
    for _kind, _make in _kinds.items():
        _function = _make(_operation)
        _function.__name__ = f"{_operation}_{_kind}"
        _function.__module__ = __name__
        check(
            _operation,
            PROMISES[_operation],
            f"torch.distributed.{_operation}",
            minimum=1,
            quick=_kind == "types",
            cases=True,
        )(_function)


def _rows(one: int, other: int, unit: int) -> int:
    """Return how many rows `one` sends to `other`: each pair its own number, and some none."""
    return 0 if (one + 2 * other) % 3 == 2 else (one + 2 * other + 1) * unit


def _rotated(size: int, step: int, one: int, other: int) -> int:
    return (one + other + step) % size * 7


def _part(one: int, other: int, unit: int, width: int) -> torch.Tensor:
    return inputs.values(one, (_rows(one, other, unit), width), torch.float32, other)


@check(
    "all_to_all_single",
    "all_to_all_single sends as many rows to each rank as the split sizes say, also none.",
    "torch.distributed.all_to_all_single",
    cases=lambda rank: [
        *(
            (
                f"all_to_all_single uneven {unit} {width} {mode}",
                partial(_rows, unit=unit),
                width,
                mode,
            )
            for unit in (1, 7, 3001)
            for mode in ("sync", "async")
            for width in (1, 2)
        ),
        # All have the same totals of each rank, as experts of a model have.
        *(
            (f"all_to_all_single other splits of one total, {n}", partial(_rotated, rank.size, n))
            for n in range(rank.size)
        ),
        ("all_to_all_single uneven int64", partial(_rows, unit=7), 2, "sync", torch.int64),
        ("all_to_all_single, rank 0 gives nothing", lambda one, other: one and one + other),
        ("all_to_all_single, rank 0 gets nothing", lambda one, other: other and one + other),
    ],
)
def uneven_all_to_all_single(
    rank: Rank,
    rows: Callable[[int, int], int],
    width: int = 2,
    mode: str = "sync",
    dtype: torch.dtype = torch.float32,
    lists: str = "both",
) -> None:
    """Give rank `other` so many rows of rank `one` as `rows(one, other)` says."""
    me, everyone = rank.rank, range(rank.size)

    def part(one, other):
        return inputs.values(one, (rows(one, other), width), dtype, other)

    sent = torch.cat([part(me, other) for other in everyone])
    expected = torch.cat([part(other, me) for other in everyone])
    source = GuardedTensor(sent, "offset", rank.device)
    output = GuardedTensor(torch.full_like(expected, 99), "offset", rank.device)
    receiving = None if lists == "input" else [rows(other, me) for other in everyone]
    sending = None if lists == "output" else [rows(me, other) for other in everyone]
    finish(
        lambda async_op: dist.all_to_all_single(
            output.tensor, source.tensor, receiving, sending, async_op=async_op
        ),
        mode,
    )
    output.check(expected)
    source.check(sent, "the input")


@check(
    "all_to_all_single",
    "all_to_all_single divides a tensor evenly that has no split sizes, also beside one that has.",
    "torch.distributed.all_to_all_single (input_split_sizes, output_split_sizes)",
    cases=lambda rank: [
        ("all_to_all_single, splits of the output alone", "output", lambda one, other: one + 1),
        ("all_to_all_single, splits of the input alone", "input", lambda one, other: other + 1),
    ],
)
def one_list_of_splits(rank: Rank, lists: str, rows: Callable[[int, int], int]) -> None:
    uneven_all_to_all_single(rank, rows, lists=lists)


@check(
    "all_to_all",
    "all_to_all sends tensors of different sizes to different ranks.",
    "torch.distributed.all_to_all",
    cases=lambda rank: [
        (f"all_to_all uneven {unit} {mode}", unit, mode)
        for unit in (1, 3001)
        for mode in ("sync", "async")
    ],
)
def uneven_all_to_all(rank: Rank, unit: int, mode: str) -> None:
    me, everyone = rank.rank, range(rank.size)
    sources = [GuardedTensor(_part(me, r, unit, 2), "offset", rank.device) for r in everyone]
    parts = [_part(r, me, unit, 2) for r in everyone]
    outputs = [GuardedTensor(torch.full_like(part, 99), "offset", rank.device) for part in parts]
    finish(
        lambda async_op: dist.all_to_all(
            [x.tensor for x in outputs], [x.tensor for x in sources], async_op=async_op
        ),
        mode,
    )
    for r in everyone:
        outputs[r].check(parts[r], f"the output of rank {r}")
        sources[r].check(_part(me, r, unit, 2), f"the input for rank {r}")


@check(
    "all_gather",
    "all_gather takes tensors of different sizes from different ranks, where a backend can.",
    "torch.distributed.all_gather",
    cases=lambda rank: [(f"all_gather uneven {unit}", unit) for unit in (1, 3001)],
)
def uneven_all_gather(rank: Rank, unit: int) -> None:
    parts = [inputs.values(r, ((r + 1) * unit,), torch.float32) for r in range(rank.size)]
    outputs = [GuardedTensor(torch.full_like(part, 99), "offset", rank.device) for part in parts]
    dist.all_gather([x.tensor for x in outputs], parts[rank.rank].to(rank.device))
    for r, output in enumerate(outputs):
        output.check(parts[r], f"the output of rank {r}")


@check(
    "reduce_scatter",
    "reduce_scatter gives ranks tensors of different sizes, where a backend can.",
    "torch.distributed.reduce_scatter",
    cases=lambda rank: [(f"reduce_scatter uneven {unit}", unit) for unit in (1, 3001)],
)
def uneven_reduce_scatter(rank: Rank, unit: int) -> None:
    me, everyone = rank.rank, range(rank.size)

    def piece(one, other):
        return inputs.values(one, ((other + 1) * unit,), torch.float32, other)

    sources = [GuardedTensor(piece(me, r), "offset", rank.device) for r in everyone]
    expected = inputs.reduction([piece(r, me) for r in everyone], ReduceOp.SUM)
    output = GuardedTensor(torch.full_like(expected, 99), "offset", rank.device)
    dist.reduce_scatter(output.tensor, [x.tensor for x in sources])
    output.check(expected)
    for r in everyone:
        sources[r].check(piece(me, r), f"the input for rank {r}")


@check(
    "all_reduce",
    "all_reduce leaves the same bits on every rank, whatever the order of its additions.",
    "torch.distributed.all_reduce (“the tensor is going to be bitwise identical in all processes”)",
    quick=True,
    cases=lambda rank: [
        (f"all_reduce {inputs.name(dtype)} SUM shape {count} of rounded numbers", dtype, count)
        for dtype in inputs.FLOATS
        for count in (1, 1000, 100_003)
    ],
)
def same_bits(rank: Rank, dtype: torch.dtype, count: int) -> None:
    def data(other):
        generator = torch.Generator().manual_seed(other + 17)
        numbers = torch.randn(count, generator=generator, dtype=torch.float64)
        return (numbers * 10.0 ** (torch.arange(count) % 5 - 2)).to(dtype)

    tensor = data(rank.rank).to(rank.device)
    dist.all_reduce(tensor)
    exact = sum(data(other).double() for other in range(rank.size))
    magnitude = sum(data(other).double().abs() for other in range(rank.size))
    allowed = rank.size * torch.finfo(dtype).eps * magnitude + torch.finfo(dtype).tiny
    difference = (tensor.cpu().double() - exact).abs() - allowed
    if not (difference <= 0).all():
        place = int((~(difference <= 0)).nonzero()[0])
        raise Wrong(
            f"element {place}: expected {float(exact[place])} within "
            f"{float(allowed[place]):.3g}, got {float(tensor[place])}"
        )
    _require_same_bits(rank, tensor)


def _require_same_bits(rank: Rank, tensor: torch.Tensor) -> None:
    digest = hashlib.sha256(bytes(tensor.cpu().view(torch.uint8).tolist())).hexdigest()
    if digest != rank.share(digest)[0]:
        raise Wrong(f"the bits differ between rank 0 and rank {rank.rank}")


@check(
    "all_reduce",
    "all_reduce with MIN or MAX leaves the same bits on every rank, also where one has a NaN.",
    "torch.distributed.all_reduce (“the tensor is going to be bitwise identical in all processes”)",
    cases=lambda rank: [
        (f"all_reduce {inputs.name(dtype)} {op_name(op)} of {count} with NaN", dtype, op, count)
        for dtype in inputs.FLOATS
        for op in (ReduceOp.MIN, ReduceOp.MAX)
        for count in (1, 1000)
    ],
)
def same_bits_with_nan(rank: Rank, dtype: torch.dtype, op: ReduceOp.RedOpType, count: int) -> None:
    contents = [inputs.values(r, (count,), dtype, op=op) for r in range(rank.size)]
    expected = inputs.reduction(contents, op)
    contents[0][::2] = float("nan")  # whose result PyTorch does not define
    tensor = contents[rank.rank].to(rank.device)
    dist.all_reduce(tensor, op)
    compare(tensor[1::2], expected[1::2])
    _require_same_bits(rank, tensor)


@check(
    "all_reduce",
    "all_reduce keeps infinities, and NaN with SUM, as the operations on numbers do.",
    "torch.distributed.ReduceOp",
)
def not_a_number(rank: Rank) -> None:
    nan, inf = float("nan"), float("inf")
    content = [nan, inf, 1.0, -inf] if rank.rank == 0 else [1.0, 1.0, 2.0, 3.0]
    tensor = torch.tensor(content, device=rank.device)
    dist.all_reduce(tensor)
    compare(tensor, torch.tensor([nan, inf, 1.0 + 2.0 * (rank.size - 1), -inf]))
    for op, number in ((ReduceOp.MIN, inf), (ReduceOp.MAX, -inf)):
        tensor = rank.full(3, number)
        dist.all_reduce(tensor, op)
        compare(tensor, torch.full((3,), number), f"{op} of {number} on every rank")


@check(
    "all_reduce",
    "PREMUL_SUM multiplies each input by the factor before it adds them, also a single one.",
    "torch.distributed.ReduceOp (PREMUL_SUM)",
    minimum=1,
    cases=lambda rank: [
        *((f"all_reduce {inputs.name(dtype)} PREMUL_SUM", dtype) for dtype in inputs.FLOATS),
        ("all_reduce float32 PREMUL_SUM in a group of one", torch.float32, True),
    ],
)
def premultiplied(rank: Rank, dtype: torch.dtype, alone: bool = False) -> None:
    groups = [rank.new_group([r]) for r in range(rank.size)] if alone else []
    group, ranks = (groups[rank.rank], [rank.rank]) if alone else (None, range(rank.size))
    contents = [inputs.values(r, (63,), dtype) for r in ranks]
    tensor = inputs.values(rank.rank, (63,), dtype).to(rank.device)
    dist.all_reduce(tensor, dist._make_nccl_premul_sum(2.0), group)
    compare(tensor, inputs.reduction([content * 2 for content in contents], ReduceOp.SUM))


@check(
    "all_reduce",
    "AVG divides before it adds, so the average of large numbers does not overflow.",
    "torch.distributed.ReduceOp (“AVG divides values by the world size before summing”)",
    cases=lambda rank: [
        (f"{operation} {inputs.name(dtype)} AVG of {count} large numbers", operation, dtype, count)
        for operation in ("all_reduce", "reduce", "reduce_scatter_single")
        for dtype in inputs.FLOATS
        for count in (63, 100_003)
    ],
)
def divided_first(rank: Rank, operation: str, dtype: torch.dtype, count: int) -> None:
    number = 0.75 * torch.finfo(dtype).max
    expected = torch.full((count,), number, dtype=dtype)
    tensor = expected.to(rank.device, copy=True)
    if operation == "all_reduce":
        dist.all_reduce(tensor, ReduceOp.AVG)
    elif operation == "reduce":
        dist.reduce(tensor, 0, ReduceOp.AVG)
    else:
        reduce_scatter_single(tensor, tensor.repeat(rank.size), ReduceOp.AVG)
    compare(tensor, expected, tolerance=4 * torch.finfo(dtype).eps * number)


@check(
    "broadcast",
    "A tensor that is negated lazily, as x.conj().imag is, is sent as the values it shows.",
    "torch.Tensor.resolve_neg",
)
def lazy_negation(rank: Rank) -> None:
    content = inputs.values(0, (63,), COMPLEX[0]).to(rank.device).conj().imag
    # Not an output: PyTorch's dispatcher passes a copy of such a tensor to the backend.
    tensor = content if rank.rank == 0 else rank.full(63, -1.0)
    dist.broadcast(tensor, 0)
    compare(tensor.resolve_neg(), content.resolve_neg())


@check(
    "all_gather_single",
    "all_gather_single and reduce_scatter_single can work in the memory of their own part.",
    "torch.distributed.all_gather_into_tensor (used so by FSDP)",
    cases=True,
)
def in_place(rank: Rank) -> None:
    for count in (5, 30_001):
        rank.case(f"all_gather_single in place {count}", _in_place, rank, count)
    rank.operation = "reduce_scatter_single"
    for count in (5, 30_001):
        rank.case(f"reduce_scatter_single in place {count}", _scattered_in_place, rank, count)


def _in_place(rank: Rank, count: int) -> None:
    parts = [inputs.values(r, (count,), torch.float32) for r in range(rank.size)]
    whole = torch.full((rank.size * count,), -9.0, device=rank.device)
    mine = whole[rank.rank * count : (rank.rank + 1) * count]
    mine.copy_(parts[rank.rank])
    dist.all_gather_into_tensor(whole, mine)
    compare(whole, torch.cat(parts))


def _scattered_in_place(rank: Rank, count: int) -> None:
    contents = [inputs.values(r, (rank.size * count,), torch.float32) for r in range(rank.size)]
    whole = contents[rank.rank].to(rank.device, copy=True)
    place = slice(rank.rank * count, (rank.rank + 1) * count)
    reduce_scatter_single(whole[place], whole)
    compare(whole[place], inputs.reduction(contents, ReduceOp.SUM)[place])


@check(
    "all_gather_single",
    "all_gather_single stacks the tensors in a new first dimension if the output has one.",
    "torch.distributed.all_gather_into_tensor",
)
def stacked(rank: Rank) -> None:
    parts = [inputs.values(r, (3, 5), torch.float32) for r in range(rank.size)]
    output = torch.empty(rank.size, 3, 5, device=rank.device)
    dist.all_gather_into_tensor(output, parts[rank.rank].to(rank.device))
    compare(output, torch.stack(parts))


@check(
    "all_gather",
    "all_gather takes inputs whose elements overlap, or have another order than the outputs.",
    "torch.Tensor.expand, torch.Tensor.t",
)
def expanded_input(rank: Rank) -> None:
    outputs = [torch.full((4, 3), -1.0, device=rank.device) for _ in range(rank.size)]
    dist.all_gather(outputs, rank.full(3, float(rank.rank)).expand(4, 3))
    for r, output in enumerate(outputs):
        compare(output, torch.full((4, 3), float(r)), f"the output of rank {r}")
    parts = [inputs.values(r, (3, 4), torch.float32) for r in range(rank.size)]
    dist.all_gather(outputs, parts[rank.rank].to(rank.device).t())
    for r, output in enumerate(outputs):
        compare(output, parts[r].t(), f"the output of rank {r}, of a transposed input")


@check(
    "barrier",
    "barrier returns on no rank before all ranks have called it.",
    "torch.distributed.barrier",
    quick=True,
    cases=lambda rank: [
        (f"barrier {mode}, rank {late} late", mode, late)
        for mode in ("sync", "async", "poll")
        for late in range(rank.size)
    ],
)
def barrier_waits(rank: Rank, mode: str, late: int) -> None:
    """The last rank leaves a mark before its call; the others must see it after theirs."""
    mark = Path(rank.folder, f"mark-{mode}-{late}")
    if rank.rank == late:
        time.sleep(0.1)
        mark.write_text("")
    finish(lambda async_op: dist.barrier(async_op=async_op), mode)
    if not mark.exists():
        raise Wrong(f"rank {rank.rank} left the barrier before rank {late} had come")


@check(
    "coalescing",
    "A coalescing manager runs all collectives of its block, on all their tensors.",
    "torch/distributed/distributed_c10d.py::_coalescing_manager",
    quick=True,
    cases=True,
)
def coalesced(rank: Rank) -> None:
    rank.operation = "coalesced"
    for is_async in (False, True):
        for kind in (_coalesced_all_reduce, _coalesced_all_gather, _coalesced_reduce_scatter):
            text = kind.__name__.strip("_").replace("coalesced_", "coalesced ")
            rank.case(f"{text} {'async' if is_async else 'sync'}", kind, rank, is_async)


_COUNTS = (3, 9001, 1)


def _inputs(rank: Rank) -> list[list[torch.Tensor]]:
    return [
        [inputs.values(r, (count,), torch.float32, count) for r in range(rank.size)]
        for count in _COUNTS
    ]


def _manage(is_async: bool, calls: Sequence[Callable[[], Any]]) -> None:
    with dist._coalescing_manager(async_ops=is_async) as manager:
        for call in calls:
            call()
    if is_async:
        manager.wait()


def _coalesced_all_reduce(rank: Rank, is_async: bool) -> None:
    contents = _inputs(rank)
    for op in (ReduceOp.SUM, ReduceOp.MAX):
        tensors = [content[rank.rank].to(rank.device, copy=True) for content in contents]
        _manage(is_async, [partial(dist.all_reduce, x, op) for x in tensors])
        for number, (tensor, content) in enumerate(zip(tensors, contents, strict=True)):
            compare(tensor, inputs.reduction(content, op), f"{op} of tensor {number}")


def _coalesced_all_gather(rank: Rank, is_async: bool) -> None:
    contents = _inputs(rank)
    outputs = [rank.full(rank.size * count, -9.0) for count in _COUNTS]
    sent = [content[rank.rank].to(rank.device) for content in contents]
    pairs = list(zip(outputs, sent, strict=True))
    _manage(is_async, [partial(dist.all_gather_into_tensor, o, x) for o, x in pairs])
    for number, (output, content) in enumerate(zip(outputs, contents, strict=True)):
        compare(output, torch.cat(content), f"output {number}")


def _coalesced_reduce_scatter(rank: Rank, is_async: bool) -> None:
    contents = _inputs(rank)
    outputs = [rank.full(count, -9.0) for count in _COUNTS]
    sent = [content[rank.rank].repeat(rank.size).to(rank.device) for content in contents]
    pairs = list(zip(outputs, sent, strict=True))
    _manage(is_async, [partial(dist.reduce_scatter_tensor, o, x) for o, x in pairs])
    for number, (output, content) in enumerate(zip(outputs, contents, strict=True)):
        compare(output, inputs.reduction(content, ReduceOp.SUM), f"output {number}")


@check(
    "all_reduce",
    "all_reduce adds sparse tensors, also if a rank has no elements.",
    "torch.distributed.all_reduce (sparse tensors)",
    cases=lambda rank: [
        ("all_reduce sparse", False),
        ("all_reduce sparse, rank 0 empty", True),
    ],
)
def sparse(rank: Rank, empty: bool) -> None:
    def content(r):
        dense = torch.zeros(9)
        if r or not empty:
            dense[r], dense[8] = r + 1.0, 1.0
        return dense

    # As DDP does for sparse gradients, which takes the result from the future.
    tensor = content(rank.rank).to_sparse().to(rank.device)
    future = dist.all_reduce(tensor, async_op=True).get_future()
    future.wait()
    compare(future.value()[0].to_dense(), sum(content(r) for r in range(rank.size)))
