"""Program: let two processes take turns, and compare what three ways to wait cost."""

import ctypes
import mmap
import multiprocessing
import os
import statistics
import time

from futexes import futex_wait, futex_wake


# [ways]
def spin(turn, mine):
    while turn.value % 2 != mine:
        pass


def yield_processor(turn, mine):
    while turn.value % 2 != mine:
        os.sched_yield()


def sleep(turn, mine):
    while (value := turn.value) % 2 != mine:
        futex_wait(turn, value)


def take_turns(wait, turn, mine, count):
    """Wait for a turn and hand it over, so many times; return the processor time."""
    begin = time.process_time()
    for _ in range(count):
        wait(turn, mine)
        turn.value += 1
        if wait is sleep:
            futex_wake(turn)
    return time.process_time() - begin


# [/ways]
BATCHES, COUNT = 10, 4


class Shared(ctypes.Structure):
    """What both processes see: whose turn it is, and how long their batches took."""

    _fields_ = [("turn", ctypes.c_uint32), ("seconds", ctypes.c_double * BATCHES * 2)]

    @property
    def word(self):
        return ctypes.c_uint32.from_buffer(self)


def play(wait, shared, mine, core):
    """Take turns on this core, and write down the processor time of each batch."""
    os.sched_setaffinity(0, {core})
    take_turns(wait, shared.word, mine, 2)  # so that both run
    for batch in range(BATCHES):
        shared.seconds[mine][batch] = take_turns(wait, shared.word, mine, COUNT)


def cost(wait, cores):
    """Return the median, over all batches, of the processor time of both processes."""
    shared = Shared.from_buffer(mmap.mmap(-1, mmap.PAGESIZE))
    context = multiprocessing.get_context("fork")
    players = [
        context.Process(target=play, args=(wait, shared, mine, core))
        for mine, core in enumerate(cores)
    ]
    for player in players:
        player.start()
    for player in players:
        player.join()
    assert [player.exitcode for player in players] == [0, 0]
    return statistics.median(map(sum, zip(*shared.seconds)))


def costs_more(times, one, other, cores):
    """Compare two ways to wait, again if other programs may have disturbed it."""
    attempts = range(5)
    return any(cost(one, cores) > times * cost(other, cores) for _ in attempts)


# All cores that the system allows: the caller may have kept this process on one.
os.sched_setaffinity(0, range(os.cpu_count()))
first, second = sorted(os.sched_getaffinity(0))[:2]

one_core = [first, first]
print("both processes on one core:")
more = costs_more(20, spin, yield_processor, one_core)
print(f"    spin costs more than 20 times as much as yield_processor: {more}")
more = costs_more(20, spin, sleep, one_core)
print(f"    spin costs more than 20 times as much as sleep: {more}")

two_cores = [first, second]
print("a core for each process:")
more = costs_more(1, sleep, spin, two_cores)
print(f"    sleep costs more than spin: {more}")
