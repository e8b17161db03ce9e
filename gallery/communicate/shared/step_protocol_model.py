"""The step protocol as a model, which is small enough to try every order of events.

Each rank runs a program of the actions of its steps: wait until the slot is free, write it,
post it, wait for the others, read them. A state is how far every rank is and what every slot
holds; `explore` visits all states that any interleaving reaches. It reports a slot that is written
while a rank still needs what is in it, a read of something else than was posted, and a deadlock.
"""

from typing import NamedTuple

# The backend has four slots. With two, what goes wrong goes wrong sooner.
SLOTS = 2


class Rank(NamedTuple):
    """One rank: its next action, its counters, and the steps that its slots hold."""

    position: int
    posted: int
    read: int
    slots: tuple


class Wrong(Exception):
    """The protocol does not hold; the text says what happened."""


# [programs]
def one_after_another(steps):
    """Return the actions of a rank that reads each step before it writes the next."""
    actions = ("free", "write", "post", "read")
    return [(action, step) for step in range(steps) for action in actions]


def one_ahead(steps):
    """Return the actions of a rank that posts each step before it reads the one before."""
    actions = []
    for step in range(steps + 1):
        if step < steps:
            actions += [("free", step), ("write", step), ("post", step)]
        if step > 0:
            actions.append(("read", step - 1))
    return actions


def reads_in(actions, sources):
    """Split each read into a wait for each source rank, a look at each, and the end."""
    split = []
    for action, step in actions:
        if action != "read":
            split.append((action, step))
            continue
        split += [(("wait", other), step) for other in sources]
        split += [(("look", other), step) for other in sources]
        split.append(("done", step))
    return split
# [/programs]


# [explore]
def explore(programs, slots=SLOTS, too_early=0):
    """Visit every state; return how many there are.

    `too_early` is the mistake: the number of steps by which a slot counts as free too early.
    """
    start = tuple(Rank(0, 0, 0, (None,) * slots) for _ in programs)
    seen, todo = {start}, [start]
    while todo:
        state = todo.pop()
        following = [
            after
            for rank in range(len(programs))
            if (after := next_state(state, rank, programs, too_early))
        ]
        ended = all(state[rank].position == len(program) for rank, program in enumerate(programs))
        if not following and not ended:
            raise Wrong(f"deadlock: {waits(state, programs)}")
        for after in following:
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return len(seen)
# [/explore]


def waits(state, programs):
    """Return what the ranks that have not ended wait for, as text."""
    return ", ".join(
        f"rank {rank} waits in {programs[rank][one.position]}"
        for rank, one in enumerate(state)
        if one.position < len(programs[rank])
    )


# [next-state]
def next_state(state, rank, programs, too_early):
    """Return the state after the next action of one rank.

    Returns None if the rank must wait for others, or has ended.
    """
    me = state[rank]
    if me.position == len(programs[rank]):
        return None
    action, step = programs[rank][me.position]
    slots = len(me.slots)
    slot = step % slots
    if action == "free":
        if any(other.read < step - slots + 1 - too_early for other in state):
            return None
        me = me._replace(position=me.position + 1)
    elif action == "write":
        for reader, other in enumerate(state):
            rest = programs[reader][other.position :]
            if me.slots[slot] is not None and (("look", rank), me.slots[slot]) in rest:
                raise Wrong(
                    f"rank {rank} writes step {step} over step {me.slots[slot]}, "
                    f"which rank {reader} has not read"
                )
        written = me.slots[:slot] + (step,) + me.slots[slot + 1 :]
        me = me._replace(position=me.position + 1, slots=written)
    elif action == "post":
        me = me._replace(position=me.position + 1, posted=step + 1)
    elif action == "done":
        me = me._replace(position=me.position + 1, read=step + 1)
    else:
        what, other = action
        if what == "wait" and state[other].posted < step + 1:
            return None
        if what == "look" and state[other].slots[slot] != step:
            raise Wrong(
                f"rank {rank} reads step {state[other].slots[slot]} of rank {other} as step {step}"
            )
        me = me._replace(position=me.position + 1)
    return state[:rank] + (me,) + state[rank + 1 :]
# [/next-state]
