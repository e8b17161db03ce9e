"""Worker: let two ranks meet twice on one store, with fixed keys."""

from two_meetings import meet_twice, rank


# [fixed]
def meet_at_fixed_keys(keys, text):
    """Tell the other rank a text, and return what it says."""
    keys.set(f"member/{rank}", text)
    return keys.get(f"member/{1 - rank}").decode()


# [/fixed]
meet_twice(meet_at_fixed_keys)
