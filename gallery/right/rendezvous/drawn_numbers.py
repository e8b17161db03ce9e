"""Worker: let two ranks meet in two groups on one store, with drawn numbers."""

import secrets
import time

from two_groups import create_two_groups, rank


# [drawn]
def meet_by_drawn_numbers(keys, text):
    """Do the same, and use only keys with the number of this group."""
    mine = secrets.token_hex(8)
    if rank == 1:
        keys.set("member/1", mine)
        number, told = keys.get(f"answer/{mine}").decode().split(" ", 1)
        keys.set(f"mapped/{number}/1", text)
        return told
    while not keys.check([f"mapped/{mine}/1"]):
        if keys.check(["member/1"]):  # perhaps from an earlier group
            keys.set("answer/" + keys.get("member/1").decode(), f"{mine} {text}")
        time.sleep(0.01)
    return keys.get(f"mapped/{mine}/1").decode()


# [/drawn]
create_two_groups(meet_by_drawn_numbers)
