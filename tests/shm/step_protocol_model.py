"""The step protocol as a model, which is small enough to try every order of events.

Each rank runs a program of the five actions of one step: wait until the slot is free, write it,
post it, wait for the others, read them. A state is how far every rank is and what every slot
holds; `explore` visits all states that any interleaving reaches. It reports a slot that is written
while a rank still needs what is in it, a read of something else than was posted, and a deadlock.
"""

from typing import NamedTuple

SLOTS = 2  # fewer than the backend has: what goes wrong goes wrong sooner


class Rank(NamedTuple):
    """One rank: its next action, its counters, and the steps that its slots hold."""

    position: int
    posted: int
    read: int
    slots: tuple


class Wrong(Exception):
    """The protocol does not hold; the text says what happened."""


def one_after_another(steps):
    """Return the actions of a rank that reads each step before it writes the next."""
    return [(action, step) for step in range(steps) for action in ("free", "write", "post", "read")]


def one_ahead(steps):
    """Return the actions of a rank that posts each step before it reads the one before."""
    actions = []
    for step in range(steps + 1):
        if step < steps:
            actions += [("free", step), ("write", step), ("post", step)]
        if step > 0:
            actions.append(("read", step - 1))
    return actions


def reads_in(actions, readers):
    """Split each read into one action for each rank to be read, and the end of reading."""
    split = []
    for action, step in actions:
        if action != "read":
            split.append((action, step))
            continue
        split += [(("wait", other), step) for other in readers]
        split += [(("look", other), step) for other in readers]
        split.append(("done", step))
    return split


def explore(programs, too_early=0):
    """Visit every state; return how many there are.

    `too_early` is the mistake: the number of steps by which a slot counts as free too early.
    """
    start = tuple(Rank(0, 0, 0, (None,) * SLOTS) for _ in programs)
    seen, todo = {start}, [start]
    while todo:
        state = todo.pop()
        following = [
            after
            for rank, program in enumerate(programs)
            if state[rank].position < len(program)
            and (after := _act(state, rank, program[state[rank].position], programs, too_early))
        ]
        ended = all(state[rank].position == len(program) for rank, program in enumerate(programs))
        if not following and not ended:
            raise Wrong(f"deadlock: {state}")
        for after in following:
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return len(seen)


def _act(state, rank, event, programs, too_early):
    """Return the state after an action of one rank, or None while it must wait."""
    (action, step), me = event, state[rank]
    slot = step % SLOTS
    if action == "free":
        if any(other.read < step - SLOTS + 1 - too_early for other in state):
            return None
        me = me._replace(position=me.position + 1)
    elif action == "write":
        for reader, other in enumerate(state):
            rest = programs[reader][other.position :]
            if me.slots[slot] is not None and (("look", rank), me.slots[slot]) in rest:
                raise Wrong(f"rank {rank} writes step {step} over {me.slots[slot]}: {state}")
        slots = me.slots[:slot] + (step,) + me.slots[slot + 1 :]
        me = me._replace(position=me.position + 1, slots=slots)
    elif action == "post":
        me = me._replace(position=me.position + 1, posted=step + 1)
    elif action == "done":
        me = me._replace(position=me.position + 1, read=step + 1)
    else:
        what, other = action
        if what == "wait" and state[other].posted < step + 1:
            return None
        if what == "look" and state[other].slots[slot] != step:
            raise Wrong(f"rank {rank} reads {state[other].slots[slot]} as {step}: {state}")
        me = me._replace(position=me.position + 1)
    return state[:rank] + (me,) + state[rank + 1 :]
