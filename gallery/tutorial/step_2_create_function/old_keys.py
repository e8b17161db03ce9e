"""Worker: create a second group on a store that has the keys of a destroyed one."""

import time

import torch.distributed as dist

import dummy_collectives  # importing it registers "dummy"

store, rank, size = next(dist.rendezvous("env://"))
create_dummy = dist.Backend._plugins["DUMMY"].creator_fn
# The number of the group that the program creates.
number = 0


# [exchange]
def exchange(store, rank, size):
    """Publish an address, and return the addresses of all ranks."""
    store.set(f"address/{rank}", f"rank {rank} in group {number}")
    keys = [f"address/{other}" for other in range(size)]
    return [address.decode() for address in store.multi_get(keys)]


def create(store, rank, size, timeout):
    """Use the same keys for each group."""
    print(f"group {number} finds", exchange(store, rank, size))
    return create_dummy(store, rank, size, timeout)


# [/exchange]

def be_late(key):
    """Wait for a key, for 3 seconds at most."""
    end = time.monotonic() + 3
    while not store.check([key]) and time.monotonic() < end:
        time.sleep(0.1)


# [numbered]
def create_numbered(store, rank, size, timeout):
    """Use new keys for each group: put its number before them."""
    calls_before = store.add("calls", 1) - 1
    own_store = dist.PrefixStore(f"{calls_before // size}", store)
    return create(own_store, rank, size, timeout)


# [/numbered]
# [groups]
for backend, function in [("same_keys", create), ("new_keys", create_numbered)]:
    dist.Backend.register_backend(backend, function, devices=["cpu"])
    print(backend)
    keys = dist.PrefixStore(backend, store)
    for number in [1, 2]:
        if (rank, number) == (1, 2):
            be_late(f"{backend}: rank 0 has group 2")
        dist.init_process_group(backend, store=keys, rank=rank, world_size=size)
        store.set(f"{backend}: rank {rank} has group {number}", "")
        store.wait([f"{backend}: rank {x} has group {number}" for x in range(size)])
        dist.destroy_process_group()
# [/groups]
