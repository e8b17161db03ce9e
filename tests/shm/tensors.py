"""Inputs that every rank can compute for every rank, and what a reduction of them must be."""

import functools

import torch
from torch.distributed import ReduceOp

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
NARROW = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]
UNSIGNED = [torch.uint8, torch.uint16, torch.uint32, torch.uint64]
COMPLEX = [torch.complex32, torch.complex64, torch.complex128]
DTYPES = FLOATS + NARROW + SIGNED + UNSIGNED + [torch.bool] + COMPLEX

BITWISE = {ReduceOp.BAND: "bitwise_and", ReduceOp.BOR: "bitwise_or", ReduceOp.BXOR: "bitwise_xor"}
OPS = [ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX, *BITWISE]

# Elements: none, one, around the border between the two ways to reduce, several slots.
COUNTS = [0, 1, 63, 4097, 70001]


def data(rank, count, dtype, seed=0):
    """Return the input of a rank: small numbers, so that sums are exact in most types."""
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    numbers = torch.randint(-3, 4, (count,), generator=generator)
    if dtype == torch.bool:
        return numbers > 0
    if dtype in UNSIGNED:
        return numbers.abs().to(dtype)
    if dtype in COMPLEX:
        return torch.complex(numbers.float(), numbers.float() / 2).to(dtype)
    return numbers.to(dtype)


def is_refused(dtype, op):
    """Tell whether there is no such reduction for the type."""
    exact = dtype in SIGNED + UNSIGNED or dtype == torch.bool
    if op in BITWISE:
        return not exact
    if op == ReduceOp.AVG:
        return exact
    return dtype in COMPLEX and op in (ReduceOp.MIN, ReduceOp.MAX)


def reduced(inputs, op):
    """Return the reduction of the inputs with the operations of PyTorch, in a wide type."""
    dtype = inputs[0].dtype
    wide = torch.complex128 if dtype.is_complex else torch.float64
    if not dtype.is_floating_point and not dtype.is_complex:
        wide = torch.int64
    values = [value.to(wide) for value in inputs]
    if op == ReduceOp.SUM:
        result = sum(values[1:], values[0])
    elif op == ReduceOp.AVG:
        result = sum(values[1:], values[0]) / len(values)
    elif op == ReduceOp.PRODUCT:
        result = functools.reduce(torch.mul, values)
    elif op == ReduceOp.MIN:
        result = functools.reduce(torch.minimum, values)
    elif op == ReduceOp.MAX:
        result = functools.reduce(torch.maximum, values)
    else:
        result = functools.reduce(getattr(torch, BITWISE[op]), values)
    return result.to(dtype)


def assert_same(result, expected, tolerant=False):
    """Compare bit for bit, or with the tolerance that the type has by default."""
    if result.numel() and result.dtype in NARROW + [torch.complex32] + UNSIGNED[1:]:
        wide = torch.complex64 if result.is_complex() else torch.float64
        result, expected = result.to(wide), expected.to(wide)
        rtol = 0.13 if tolerant else 0
        torch.testing.assert_close(result, expected, rtol=rtol, atol=0, equal_nan=True)
    elif tolerant:
        torch.testing.assert_close(result, expected, equal_nan=True)
    else:
        torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)


def contiguous(tensor):
    return tensor.clone()


def every_other(tensor):
    wide = torch.empty(2 * tensor.numel(), dtype=tensor.dtype)
    wide[::2] = tensor.flatten()
    return wide[::2].view(tensor.shape)


def with_offset(tensor):
    longer = torch.empty(tensor.numel() + 3, dtype=tensor.dtype)
    longer[3:] = tensor.flatten()
    return longer[3:].view(tensor.shape)


LAYOUTS = [contiguous, every_other, with_offset]
