"""Worker: reduce every dtype with every ReduceOp; print which of them MPI alone gets right."""

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

import mpi_collectives  # importing it registers "mpich"
from mpi_by_ctypes import arguments_of, mpi

# As in types.hpp.
TYPES = {
    torch.uint8: "MPI_UINT8_T",
    torch.int8: "MPI_INT8_T",
    torch.int16: "MPI_INT16_T",
    torch.int32: "MPI_INT32_T",
    torch.int64: "MPI_INT64_T",
    torch.uint16: "MPI_UINT16_T",
    torch.uint32: "MPI_UINT32_T",
    torch.uint64: "MPI_UINT64_T",
    torch.float32: "MPI_FLOAT",
    torch.float64: "MPI_DOUBLE",
    torch.complex64: "MPI_C_FLOAT_COMPLEX",
    torch.complex128: "MPI_C_DOUBLE_COMPLEX",
}
OTHERS = [torch.bool, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2]
OPS = {  # how MPI calls it, and how PyTorch computes it
    ReduceOp.SUM: ("MPI_SUM", torch.add),
    ReduceOp.PRODUCT: ("MPI_PROD", torch.mul),
    ReduceOp.AVG: ("MPI_SUM", lambda one, other: (one + other) / 2),
    ReduceOp.PREMUL_SUM(0.5): ("MPI_SUM", lambda one, other: one * 0.5 + other * 0.5),
    ReduceOp.MIN: ("MPI_MIN", torch.minimum),
    ReduceOp.MAX: ("MPI_MAX", torch.maximum),
    ReduceOp.BAND: ("MPI_BAND", torch.bitwise_and),
    ReduceOp.BOR: ("MPI_BOR", torch.bitwise_or),
    ReduceOp.BXOR: ("MPI_BXOR", torch.bitwise_xor),
}
COLUMNS = {
    "SUM, PRODUCT": 2,
    "AVG, PREMUL_SUM": 2,
    "MIN, MAX": 2,
    "BAND, BOR, BXOR": 3,
}


def inputs(dtype):
    """Return the elements of both ranks; NaN, a high or a negative number is among them."""
    if dtype.is_complex:
        special = 2j
    elif dtype.is_floating_point:
        special = float("nan")
    elif dtype == torch.bool:
        special = True
    else:
        special = 200 if torch.iinfo(dtype).min == 0 else -6
    one, other = [6, 0, special, 2], [2, 2, 4, special]
    return [torch.tensor(x).to(dtype).repeat(1001) for x in (one, other)]


def equal(one, other):
    return torch.allclose(one.to(wide), other.to(wide), rtol=0, atol=0, equal_nan=True)


# [ways]
def is_right_by_mpi(one, other, name, expected):
    """Return whether MPI gets the expected numbers, and the same result in both orders."""
    if one.dtype not in TYPES:
        return False
    results = []
    for source, target in [(one, other), (other, one)]:
        result = target.clone()
        failed = mpi.MPI_Reduce_local(*arguments_of(source, result, TYPES[one.dtype], name))
        if failed:
            return False
        results.append(result)
    numbers = ~expected.isnan()
    return equal(*results) and equal(results[0][numbers], expected[numbers])


def way(dtype, op):
    """Return what reduces this dtype: MPI, or the function of the frame; "–" is neither."""
    one, other = inputs(dtype)
    result = (one, other)[rank].clone()
    try:
        dist.reduce(result, 0, op)
    except ValueError:
        return "–"
    name, compute = OPS[op]
    expected = compute(one.to(wide), other.to(wide)).to(dtype)
    assert rank != 0 or equal(result, expected), (dtype, op)
    if name == "MPI_SUM":  # the frame divides or multiplies
        expected = torch.add(one.to(wide), other.to(wide)).to(dtype)
    return "MPI" if is_right_by_mpi(one, other, name, expected) else "frame"


# [/ways]
dist.init_process_group("mpich")
rank = dist.get_rank()
rows = {}
for dtype in [*TYPES, *OTHERS]:
    wide = torch.complex128 if dtype.is_complex else torch.float64
    if not (dtype.is_complex or dtype.is_floating_point):
        wide = torch.bool if dtype == torch.bool else torch.int64
    ways = [way(dtype, op) for op in OPS]
    cells = [
        "/".join(sorted({ways.pop(0) for _ in range(count)})) for count in COLUMNS.values()
    ]
    rows.setdefault(tuple(cells), []).append(str(dtype).removeprefix("torch."))
for cells, dtypes in {("dtype", *COLUMNS): None, **rows}.items():
    print("\t".join([", ".join(dtypes), *cells] if dtypes else cells))
dist.destroy_process_group()
