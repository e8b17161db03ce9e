"""Program: wait for a message while another process wakes the waiting one for other things."""

import multiprocessing
import time


# [mistake]
def timeout_each_time(changed, arrived, seconds):
    """Wait until the message has arrived, or for `seconds` after the last change."""
    while not arrived.is_set():
        if not changed.wait(seconds):
            raise TimeoutError


# [/mistake]
# [cure]
def deadline_once(changed, arrived, seconds):
    """Wait until the message has arrived, or until the time is over."""
    deadline = time.monotonic() + seconds
    while not arrived.is_set():
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        changed.wait(left)


# [/cure]
def notify(changed, arrived, ended):
    """Notify for two seconds, and then send the message, unless the wait ends before."""
    for _ in range(40):
        if ended.wait(0.05):
            return
        with changed:
            changed.notify_all()
    with changed:
        arrived.set()
        changed.notify_all()


def try_out(wait):
    """Print whether a wait with a timeout of one second gave up before the message."""
    context = multiprocessing.get_context("fork")
    changed, arrived, ended = context.Condition(), context.Event(), context.Event()
    process = context.Process(target=notify, args=(changed, arrived, ended))
    process.start()
    try:
        with changed:
            wait(changed, arrived, 1)
        gave_up = False
    except TimeoutError:
        gave_up = True
    ended.set()
    process.join()
    assert gave_up != arrived.is_set()
    print(f"{wait.__name__}: gave up before the message: {gave_up}")


def give_up(wait):
    """Check that a wait ends if nothing happens."""
    try:
        with (changed := multiprocessing.Condition()):
            wait(changed, multiprocessing.Event(), 0.1)
    except TimeoutError:
        return
    raise AssertionError("the wait did not give up")


for wait in [timeout_each_time, deadline_once]:
    give_up(wait)
    try_out(wait)
