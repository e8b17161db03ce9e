"""Worker: print what PyTorch passes to the function that creates the backend."""

import torch.distributed as dist

import store_collectives  # importing it registers "store"

# [create]
create_store = dist.Backend._plugins["STORE"].creator_fn


def create(group, pg_options):
    """Print what this rank receives, and create the backend."""
    print(f"group {group.group_id}: rank {group.group_rank} of {group.group_size}")
    print(f"    timeout {group.timeout}, global ranks {group.global_ranks_in_group}")
    return create_store(group, pg_options)


dist.Backend.register_backend("traced", create, extended_api=True, devices=["cpu"])
dist.init_process_group("traced")
dist.new_group([0, 2])
dist.destroy_process_group()
# [/create]
