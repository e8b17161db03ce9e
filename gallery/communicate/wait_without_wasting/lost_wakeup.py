"""Program: let a post come between the steps of a rank that falls asleep."""

import ctypes
import mmap

from futexes import futex_wait, futex_wake


# [bell]
class Shared(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ["rings", "sleepers", "posted"]]

    @property
    def bell(self):
        return ctypes.c_uint32.from_buffer(self)  # the number of rings


def post(shared):
    """Write the counter, and wake whoever sleeps."""
    shared.posted = 1
    if shared.sleepers > 0:
        shared.rings += 1
        futex_wake(shared.bell)


# [/bell]
# [waits]
def look_then_announce(shared):
    """Wait for the post; sleep for one second at most."""
    yield "look"
    if not shared.posted:
        yield "announce"
        shared.sleepers += 1
        yield "sleep"
        futex_wait(shared.bell, shared.rings, seconds=1)


def announce_then_look(shared):
    """Do the same with the steps in another order."""
    yield "announce"
    shared.sleepers += 1
    yield "read rings"
    rings = shared.rings
    yield "look"
    if not shared.posted:
        yield "sleep"
        futex_wait(shared.bell, rings, seconds=1)


# [/waits]
# [try]
def wait_with_post(wait, when):
    """Run the steps of a wait, and post before one of them; return how the wait ended."""
    shared = Shared.from_buffer(mmap.mmap(-1, mmap.PAGESIZE))
    try:
        for step in wait(shared):
            if step == when:
                post(shared)
    except TimeoutError:
        return "still asleep after 1 s"
    return "the wait has returned"


# [/try]
STEPS = {
    look_then_announce: ["look", "announce", "sleep"],
    announce_then_look: ["announce", "read rings", "look", "sleep"],
}
for wait, steps in STEPS.items():
    print(wait.__name__)
    for step in steps:
        print(f"    a post before {step}: {wait_with_post(wait, step)}")
