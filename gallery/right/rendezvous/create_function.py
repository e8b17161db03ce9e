"""Worker: print which calls of a program reach the function that creates the backend."""

import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

# [create]
create_dummy = dist.Backend._plugins["DUMMY"].creator_fn
noted = []


def create(store, rank, size, timeout):
    """Note the call, and create a dummy."""
    noted.append(f"rank {rank} of {size}")
    return create_dummy(store, rank, size, timeout)


dist.Backend.register_backend("traced", create, devices=["cpu", "cuda"])
# [/create]


def show(call):
    """Print a call of the program, and what it has made the function note."""
    print(call, ", ".join(noted) or "–", sep="\t")
    noted.clear()


dist.init_process_group("traced")
show('init_process_group("traced")')
dist.new_group([1])
show("new_group([1])")
dist.destroy_process_group()

for backend in [
    "cpu:traced,cuda:traced",
    "cpu:traced,cuda:dummy",
    "cpu:traced,cuda:traced,xpu:dummy",
]:
    dist.init_process_group(backend)
    show(f'init_process_group("{backend}")')
    dist.destroy_process_group()
assert dist.Backend.default_device_backend_map["cpu"] == "gloo"
