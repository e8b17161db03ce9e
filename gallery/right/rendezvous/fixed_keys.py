"""Worker: let two ranks meet in two groups on one store, with fixed keys."""

from two_groups import create_two_groups, rank


# [fixed]
def meet_at_fixed_keys(keys, text):
    """Tell the other rank a text, and return what it says."""
    keys.set(f"member/{rank}", text)
    return keys.get(f"member/{1 - rank}").decode()


# [/fixed]
create_two_groups(meet_at_fixed_keys)
