"""Module: let two ranks meet twice on one store, and print what each says."""

import time

import torch.distributed as dist

store, rank, size = next(dist.rendezvous("env://"))


def wait_for(keys, key):
    """Wait for a key, for 2 seconds at most."""
    end = time.monotonic() + 2
    while not keys.check([key]) and time.monotonic() < end:
        time.sleep(0.01)


# [meetings]
def meet_twice(meet):
    keys = dist.PrefixStore(meet.__name__, store)
    for meeting in [1, 2]:
        if (rank, meeting) == (1, 2):
            wait_for(keys, "rank 0 has met rank 1 again")
        told = meet(keys, f"rank {rank}, meeting {meeting}")
        print(f"in meeting {meeting}, the other rank says: {told}")
        if (rank, meeting) == (0, 2):
            keys.set("rank 0 has met rank 1 again", "")
        keys.set(f"rank {rank} ends meeting {meeting}", "")
        keys.wait([f"rank {other} ends meeting {meeting}" for other in range(size)])
# [/meetings]
