"""Program: wait for a post while another process rings for other things."""

import multiprocessing
import time


# [mistake]
def timeout_each_time(bell, post, seconds):
    """Wait until the other process has posted, or for `seconds` after the last ring."""
    while not post.is_set():
        if not bell.wait(seconds):
            raise TimeoutError


# [/mistake]
# [cure]
def deadline_once(bell, post, seconds):
    """Wait until the other process has posted, or until the time is over."""
    deadline = time.monotonic() + seconds
    while not post.is_set():
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        bell.wait(left)


# [/cure]
def ring(bell, post, ended):
    """Ring for two seconds, and then post, unless the wait ends before."""
    for _ in range(40):
        if ended.wait(0.05):
            return
        with bell:
            bell.notify_all()
    with bell:
        post.set()
        bell.notify_all()


def try_out(wait):
    """Print whether a wait with a timeout of one second gave up before the post."""
    context = multiprocessing.get_context("fork")
    bell, post, ended = context.Condition(), context.Event(), context.Event()
    process = context.Process(target=ring, args=(bell, post, ended))
    process.start()
    try:
        with bell:
            wait(bell, post, 1)
        gave_up = False
    except TimeoutError:
        gave_up = True
    ended.set()
    process.join()
    assert gave_up != post.is_set()
    print(f"{wait.__name__}: gave up before the post: {gave_up}")


def give_up(wait):
    """Check that a wait ends if nobody rings."""
    try:
        with (bell := multiprocessing.Condition()):
            wait(bell, multiprocessing.Event(), 0.1)
    except TimeoutError:
        return
    raise AssertionError("the wait did not give up")


for wait in [timeout_each_time, deadline_once]:
    give_up(wait)
    try_out(wait)
