"""Worker: reduce tensors of every dtype with every operation, on gloo and on store."""

import json

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

import store_collectives  # importing it registers "store"

# [reductions]
OPERATIONS = {
    "SUM": (ReduceOp.SUM, 5),
    "AVG": (ReduceOp.AVG, 2.5),
    "PREMUL_SUM": (ReduceOp.PREMUL_SUM(2), 10),
    "PRODUCT": (ReduceOp.PRODUCT, 6),
    "MIN": (ReduceOp.MIN, 2),
    "MAX": (ReduceOp.MAX, 3),
    "BAND": (ReduceOp.BAND, 2),
    "BOR": (ReduceOp.BOR, 3),
    "BXOR": (ReduceOp.BXOR, 1),
}
DTYPES = {
    "float16 to float64, bfloat16": ["float16", "bfloat16", "float32", "float64"],
    "float8": ["float8_e4m3fn", "float8_e5m2"],
    "complex": ["complex64", "complex128"],
    "uint8, int8, int32, int64": ["uint8", "int8", "int32", "int64"],
    "int16, uint16, uint32, uint64": ["int16", "uint16", "uint32", "uint64"],
    "bool": ["bool"],
}


def reduces(group, dtype, operation, expected):
    """Reduce 2 of rank 0 and 3 of rank 1. Return False if the group cannot."""
    tensor = torch.tensor(2 + dist.get_rank()).to(dtype)
    try:
        dist.all_reduce(tensor, operation, group=group)
    except (RuntimeError, ValueError):
        return False
    if dtype == torch.bool:  # As bools, both numbers are True.
        expected = operation != ReduceOp.BXOR
    assert tensor == torch.tensor(expected).to(dtype), (dtype, operation, tensor)
    return True


# [/reductions]
dist.init_process_group("gloo")
groups = {"gloo": dist.group.WORLD, "store": dist.new_group(backend="store")}
table = []
for name, dtypes in DTYPES.items():
    row = [name]
    for operation in OPERATIONS.values():
        able = []
        for backend, group in groups.items():
            answers = {reduces(group, getattr(torch, x), *operation) for x in dtypes}
            assert len(answers) == 1, (name, backend)  # The dtypes of a row are alike.
            able += [backend] * answers.pop()
        row.append(", ".join(able) or "–")
    table.append(row)
if dist.get_rank() == 0:
    print(json.dumps([["dtype", *OPERATIONS], table], ensure_ascii=False))
dist.destroy_process_group()
