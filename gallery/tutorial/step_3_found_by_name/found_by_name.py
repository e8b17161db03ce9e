"""Worker: each rank is a separate job and names a backend in another way."""

import os
import sys
import warnings

import torch
import torch.distributed as dist


# [ways]
def start(backend):
    """Start a job of one process, and use its group."""
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    return use(dist.group.WORLD)


def use(group):
    tensor = torch.ones(2)
    dist.all_reduce(tensor, group=group)
    return f"{dist.get_backend_config(group)} makes of ones {tensor.tolist()}"


def start_gloo_and_add_a_group():
    start("gloo")
    return use(dist.new_group(backend="dummy"))


ways = {
    'init_process_group("dummy")': lambda: start("dummy"),
    'init_process_group("cpu:dummy")': lambda: start("cpu:dummy"),
    'init_process_group("cpu:gloo,cuda:dummy")': lambda: start("cpu:gloo,cuda:dummy"),
    'new_group(backend="dummy")': start_gloo_and_add_a_group,
    'is_backend_available("dummy")': lambda: dist.is_backend_available("dummy"),
    'init_process_group("nobody")': lambda: start("nobody"),
}
# [/ways]

# [try]
assert "dummy" not in dist.Backend.backend_list
text, way = list(ways.items())[int(os.environ["RANK"])]
print(text)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        result = way()
    except AssertionError as error:
        result = f"AssertionError: {error}"
for warning in caught:
    print("   ", str(warning.message).partition(",")[0])
print("   ", result)
print("    dummy_collectives imported:", "dummy_collectives" in sys.modules)
# [/try]

if dist.is_initialized():
    dist.destroy_process_group()
