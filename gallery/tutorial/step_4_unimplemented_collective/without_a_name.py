"""Worker: a backend in Python that has no name for its errors."""

import re

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend


# [nameless]
class Nameless(Backend):
    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)


dist.Backend.register_backend("nameless", Nameless, devices=["cpu"])
calls = {
    "init_process_group": lambda: dist.init_process_group("nameless"),
    "broadcast": lambda: dist.broadcast(torch.ones(2), src=0),
}
for name, call in calls.items():
    try:
        call()
    except RuntimeError as error:
        print(f"{name}: {re.sub(' at .*?,', ',', str(error))}")
        break
# [/nameless]
else:
    raise AssertionError("a backend without a name was used")

if dist.is_initialized():
    dist.destroy_process_group()
