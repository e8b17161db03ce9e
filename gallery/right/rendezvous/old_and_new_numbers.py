"""Worker: let two ranks meet twice on one store, with fixed keys and with drawn numbers."""

import secrets
import time

import torch.distributed as dist

store, rank, size = next(dist.rendezvous("env://"))


# [fixed]
def meet_at_fixed_keys(keys, text):
    """Tell the other rank a text, and return what it says."""
    keys.set(f"member/{rank}", text)
    return keys.get(f"member/{1 - rank}").decode()


# [/fixed]
# [drawn]
def meet_by_drawn_numbers(keys, text):
    """Do the same, and use only keys with the number of this meeting."""
    mine = secrets.token_hex(8)
    if rank == 1:
        keys.set("member/1", mine)
        number, told = keys.get(f"answer/{mine}").decode().split(" ", 1)
        keys.set(f"mapped/{number}/1", text)
        return told
    while not keys.check([f"mapped/{mine}/1"]):
        if keys.check(["member/1"]):  # perhaps from an earlier meeting
            keys.set("answer/" + keys.get("member/1").decode(), f"{mine} {text}")
        time.sleep(0.01)
    return keys.get(f"mapped/{mine}/1").decode()


# [/drawn]
def wait_for(keys, key):
    """Wait for a key, for 2 seconds at most."""
    end = time.monotonic() + 2
    while not keys.check([key]) and time.monotonic() < end:
        time.sleep(0.01)


# [meetings]
for meet in [meet_at_fixed_keys, meet_by_drawn_numbers]:
    print(meet.__name__)
    keys = dist.PrefixStore(meet.__name__, store)
    for meeting in [1, 2]:
        if (rank, meeting) == (1, 2):
            wait_for(keys, "rank 0 has met rank 1 again")
        told = meet(keys, f"rank {rank}, meeting {meeting}")
        print(f"    in meeting {meeting}, the other rank says: {told}")
        if (rank, meeting) == (0, 2):
            keys.set("rank 0 has met rank 1 again", "")
        keys.set(f"rank {rank} ends meeting {meeting}", "")
        keys.wait([f"rank {other} ends meeting {meeting}" for other in range(size)])
# [/meetings]
