"""Inputs that every rank can compute for every rank, layouts of tensors, and comparisons."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.distributed import ReduceOp

from c10d_conformance.rank import Wrong

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
NARROW = [torch.float8_e4m3fn, torch.float8_e5m2]
SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]
UNSIGNED = [torch.uint8, torch.uint16, torch.uint32, torch.uint64]
COMPLEX = [torch.complex64, torch.complex128]
DTYPES = [*FLOATS, *NARROW, *SIGNED, *UNSIGNED, torch.bool, *COMPLEX]

BITWISE: dict[ReduceOp.RedOpType, Callable[..., torch.Tensor]] = {
    ReduceOp.BAND: torch.bitwise_and,
    ReduceOp.BOR: torch.bitwise_or,
    ReduceOp.BXOR: torch.bitwise_xor,
}
_Join = dict[ReduceOp.RedOpType, Callable[..., torch.Tensor]]
_JOIN: _Join = {
    **BITWISE,
    ReduceOp.SUM: torch.add,
    ReduceOp.AVG: torch.add,
    ReduceOp.PRODUCT: torch.mul,
    ReduceOp.MIN: torch.minimum,
    ReduceOp.MAX: torch.maximum,
}
# Numbers are true when they are not zero: a sum is any, a product is all.
_JOIN_BOOL: _Join = {
    **BITWISE,
    ReduceOp.SUM: torch.logical_or,
    ReduceOp.MAX: torch.logical_or,
    ReduceOp.PRODUCT: torch.logical_and,
    ReduceOp.MIN: torch.logical_and,
}
OPS = [ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX, *BITWISE]

# Shapes: one element, odd, 4097 elements as a matrix, none, and a tensor without dimensions.
SHAPES: list[tuple[int, ...]] = [(1,), (63,), (17, 241), (0,), ()]
# Around 64 KiB of float32, where many transports change their way, and several MiB.
BORDERS: list[tuple[int, ...]] = [(16383,), (16384,), (16385,), ((1 << 20) + 1,)]
BUCKET = ((25 << 18) + 1,)  # a bucket of DDP in float32 or int32, and one element more


@dataclass(frozen=True)
class Layout:
    """Where the elements of a tensor are in their memory; the counts are of elements."""

    transposed: bool = False
    step: int = 1  # from one element to the next
    pad: int = 0  # behind each row
    offset: int = 0  # before the first element

    def place(self, shape: Sequence[int]) -> tuple[int, tuple[int, ...], int]:
        """Return the length of the memory, and the strides and the offset of a tensor in it.

        Behind the last element are some more, unless the layout is the usual one.
        """
        stride = [0] * len(shape)
        step, pad, end = self.step, self.pad, self.offset
        dimensions = range(len(shape))
        for dimension in dimensions if self.transposed else reversed(dimensions):
            stride[dimension] = step
            end += max(shape[dimension] - 1, 0) * step
            step, pad = step * max(shape[dimension], 1) + pad, 0
        end = self.offset if 0 in shape else end + 1
        return end + (4 if self != Layout() else 0), tuple(stride), self.offset

    def __str__(self) -> str:
        fields = {"step": (self.step, 1), "pad": (self.pad, 0), "offset": (self.offset, 0)}
        parts = ["transposed"] if self.transposed else []
        parts += [f"{name} {value}" for name, (value, usual) in fields.items() if value != usual]
        return " ".join(parts) or "contiguous"


_NAMED = {
    "contiguous": Layout(),
    "offset": Layout(offset=3),
    "strided": Layout(step=2, offset=2),
    "transposed": Layout(transposed=True, offset=1),
    "column": Layout(pad=3, offset=1),  # some columns of a wider matrix
}
LAYOUTS = list(_NAMED)

# Numbers that narrower types cannot hold, but whose sums, also of 64 ranks, are exact.
LARGE = {
    **dict.fromkeys([torch.float32, torch.complex64], 2**17 + 1),
    **dict.fromkeys([torch.float64, torch.complex128], 2**40 + 1),
    **dict.fromkeys([torch.int16, torch.uint16], 2**11 + 1),
    **dict.fromkeys([torch.int32, torch.uint32], 2**24 + 1),
    **dict.fromkeys([torch.int64, torch.uint64], 2**55 + 1),
    torch.bfloat16: 2**17,
}

_GUARD = 0x5A


def name(dtype: torch.dtype) -> str:
    """Return float32 for torch.float32."""
    return str(dtype).rpartition(".")[2]


def values(
    rank: int,
    shape: Sequence[int],
    dtype: torch.dtype,
    seed: int = 0,
    op: ReduceOp.RedOpType = ReduceOp.SUM,
) -> torch.Tensor:
    """Return a tensor of a rank that is the same wherever it is computed; see `_values`."""
    return _values(rank, tuple(shape), dtype, seed, op).clone()


@functools.lru_cache(maxsize=64)
def _values(
    rank: int, shape: tuple[int, ...], dtype: torch.dtype, seed: int, op: ReduceOp.RedOpType
) -> torch.Tensor:
    """Return the input of a rank, in the memory of the CPU.

    The numbers are small, so that every order of additions gives the same bits; for products they
    are 1, -1 and 2. No two neighbours are alike for long, and no two ranks. The element in the
    middle is large; for operations on bits, all elements are.
    """
    generator = torch.Generator().manual_seed(7919 * seed + rank + 1)
    count = math.prod(shape)
    if op == ReduceOp.PRODUCT and dtype not in (torch.bool, *UNSIGNED):
        numbers = torch.tensor([1, -1, 2])[torch.randint(0, 3, (count,), generator=generator)]
    elif op == ReduceOp.PRODUCT:
        numbers = torch.randint(1, 3, (count,), generator=generator)
    elif op in BITWISE:
        numbers = torch.randint(-(2**62), 2**62, (count,), generator=generator)
    else:
        numbers = torch.randint(-3, 4, (count,), generator=generator)
    if count and op in (ReduceOp.SUM, ReduceOp.MIN, ReduceOp.MAX):
        numbers[count // 2] += LARGE.get(dtype, 0)
    if count and op == ReduceOp.PRODUCT:
        numbers[count // 2] = LARGE.get(dtype, 1) if rank == 0 else 1
    if dtype == torch.bool:
        return (numbers % 2 > 0).reshape(shape)
    if dtype in UNSIGNED:
        numbers = numbers.abs()
        if count and op in (ReduceOp.MIN, ReduceOp.MAX) and dtype.itemsize < 8:
            numbers[0] = 2 ** (8 * dtype.itemsize - 1) - 1 + (rank & 1)  # above the signed range
    if dtype.is_complex:
        other = torch.randint(-3, 4, (count,), generator=generator)
        return torch.complex(numbers.double(), other.double()).to(dtype).reshape(shape)
    return numbers.to(dtype).reshape(shape)


def is_meaningless(dtype: torch.dtype, op: ReduceOp.RedOpType) -> bool:
    """Tell whether mathematics has no such reduction for the type."""
    exact = not dtype.is_floating_point and not dtype.is_complex
    if op in BITWISE:
        return not exact
    if op == ReduceOp.AVG:
        return exact
    # The product of complex numbers: torch.distributed itself refuses it.
    return dtype.is_complex and op in (ReduceOp.MIN, ReduceOp.MAX, ReduceOp.PRODUCT)


def reduction(inputs: list[torch.Tensor], op: ReduceOp.RedOpType) -> torch.Tensor:
    """Return the reduction of the inputs with operations of PyTorch, in a wide type."""
    dtype = inputs[0].dtype
    if dtype == torch.bool:
        return functools.reduce(_JOIN_BOOL[op], inputs)
    if dtype.is_complex:
        wide = torch.complex128
    else:
        wide = torch.float64 if dtype.is_floating_point else torch.int64
    result = functools.reduce(_JOIN[op], [value.to(wide) for value in inputs])
    if op == ReduceOp.AVG:
        result = result / len(inputs)
    return result.to(dtype)


class GuardedTensor:
    """A tensor in some layout, with guards around it and between its elements."""

    def __init__(
        self, content: torch.Tensor, layout: str | Layout, device: torch.device | str
    ) -> None:
        self.layout = layout
        place = layout if isinstance(layout, Layout) else _NAMED[layout]
        shape = tuple(content.shape)
        total, stride, offset = place.place(shape)
        raw = torch.full((total * content.dtype.itemsize,), _GUARD, dtype=torch.uint8)
        self._base = raw.to(device).view(content.dtype)
        self._place = shape, stride, offset
        self.tensor = self._base.as_strided(*self._place)
        _copy(self.tensor, content.to(device))
        places = torch.arange(total).as_strided(shape, stride, offset).flatten()
        self._outside = torch.ones(total, dtype=torch.bool)
        self._outside[places] = False

    @property
    def nbytes(self) -> int:
        """Return the size of the memory in which the tensor and its guards are."""
        return self._base.untyped_storage().nbytes()

    def check(
        self, expected: torch.Tensor, what: str = "the output", tolerance: float | None = None
    ) -> None:
        """Raise Wrong unless the tensor has the expected values and its guards are whole."""
        compare(self.tensor, expected, what, tolerance)
        view = self._base.as_strided(*self._place)
        if self.tensor.data_ptr() != view.data_ptr():
            # Other views of the memory must have the values, too.
            compare(view, expected, f"{what}, which now has other memory, in the old", tolerance)
        width = self._base.dtype.itemsize
        # As bytes, because a device may copy a bool that is a guard as True.
        raw = self._base.view(torch.uint8).cpu().reshape(len(self._outside), width)
        broken = (raw != _GUARD).any(1) & self._outside
        if broken.any():
            place = int(broken.nonzero()[0])
            raise Wrong(
                f"{what}: memory outside of the tensor was written, at element {place} of "
                f"its storage (layout {self.layout})"
            )


def _copy(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy a tensor of any dtype, also of those without a kernel for copies."""
    if source.dtype in NARROW:
        target.view(torch.uint8).copy_(source.view(torch.uint8))
    else:
        target.copy_(source)


def compare(
    got: torch.Tensor,
    expected: torch.Tensor,
    what: str = "the output",
    tolerance: float | None = None,
) -> None:
    """Raise Wrong with the first element that differs.

    Without `tolerance` all bits must be equal, except that -0.0 equals 0.0. The operation has
    returned, so an error here is no refusal.
    """
    try:
        _compare(got, expected, what, tolerance)
    except (RuntimeError, ValueError, TypeError) as error:
        raise Wrong(f"{what}: cannot be compared: {error}") from error


def _compare(got: torch.Tensor, expected: torch.Tensor, what: str, tolerance: float | None) -> None:
    if tuple(got.shape) != tuple(expected.shape) or got.dtype != expected.dtype:
        raise Wrong(
            f"{what}: expected shape {tuple(expected.shape)} {name(expected.dtype)}, "
            f"got {tuple(got.shape)} {name(got.dtype)}"
        )
    # Copy the bytes first: a result that came too early may change, and a copy of bools may have
    # other bytes.
    got = got.detach().cpu().resolve_conj().resolve_neg()
    raw = got.view(torch.uint8) if got.element_size() == 1 else got
    got = raw.clone(memory_format=torch.contiguous_format).view(got.dtype).flatten()
    expected = expected.detach().cpu().contiguous().flatten()
    if not got.numel():
        return
    if got.dtype == torch.bool:
        wide_got, wide = got.view(torch.uint8), expected.view(torch.uint8)
    elif got.dtype in NARROW + FLOATS:
        wide_got, wide = got.double(), expected.double()
    elif got.dtype in UNSIGNED:
        wide_got, wide = got.to(torch.int64), expected.to(torch.int64)
    else:
        wide_got, wide = got, expected
    if tolerance is None:
        same = wide_got == wide
        if not wide.dtype.is_complex and wide.dtype.is_floating_point:
            same |= wide_got.isnan() & wide.isnan()
    else:
        same = (wide_got - wide).abs() <= tolerance
    if same.all():
        return
    places = (~same).nonzero().flatten()
    first = int(places[0])
    raise Wrong(
        f"{what}: element {first} of {got.numel()}: expected {_show(expected[first])}, "
        f"got {_show(got[first])} ({len(places)} elements differ)"
    )


def _show(element: torch.Tensor) -> str:
    if element.dtype == torch.bool:
        byte = int(element.view(torch.uint8))
        return str(bool(byte)) if byte < 2 else f"a bool with the byte {byte}"
    return str(element.item())
