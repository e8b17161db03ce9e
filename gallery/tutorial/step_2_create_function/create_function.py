"""Worker: print each call of the function that creates the backend."""

import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

# [create]
create_dummy = dist.Backend._plugins["DUMMY"].creator_fn


def create(store, rank, size, timeout):
    """Print the arguments, and create a dummy."""
    print(f"    create: rank {rank} of {size}, timeout {timeout}")
    return create_dummy(store, rank, size, timeout)


dist.Backend.register_backend("traced", create, devices=["cpu", "cuda"])
# [/create]

# [groups]
print('init_process_group("traced")')
dist.init_process_group("traced")
print("new_group([1])")
dist.new_group([1])
dist.destroy_process_group()

for backend in [
    "cpu:traced,cuda:traced",
    "cpu:traced,cuda:dummy",
    "cpu:traced,cuda:traced,xpu:dummy",
]:
    print(f'init_process_group("{backend}")')
    dist.init_process_group(backend)
    dist.destroy_process_group()
# [/groups]
