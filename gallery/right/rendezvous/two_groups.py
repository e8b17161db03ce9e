"""Module: let two ranks meet in the create function of two groups, and print what each says."""

import time

import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

store, rank, size = next(dist.rendezvous("env://"))
create_dummy = dist.Backend._plugins["DUMMY"].creator_fn


def wait_for(keys, key):
    """Wait for a key, for 2 seconds at most."""
    end = time.monotonic() + 2
    while not keys.check([key]) and time.monotonic() < end:
        time.sleep(0.01)


# [groups]
def create_two_groups(meet):
    """Create two groups, whose create function calls meet."""

    def create(group_store, rank, size, timeout):
        told = meet(group_store, f"rank {rank}, group {number}")
        print(f"in group {number}, the other rank says: {told}")
        return create_dummy(group_store, rank, size, timeout)

    name = meet.__name__
    dist.Backend.register_backend(name, create, devices=["cpu"])
    keys = dist.PrefixStore(name, store)
    for number in [1, 2]:
        if (rank, number) == (1, 2):
            wait_for(keys, "rank 0 has group 2")
        dist.init_process_group(name, store=keys, rank=rank, world_size=size)
        keys.set(f"rank {rank} has group {number}", "")
        keys.wait([f"rank {other} has group {number}" for other in range(size)])
        dist.destroy_process_group()


# [/groups]
