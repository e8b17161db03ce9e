"""Say how far some work is: on a terminal in one line that moves, in a log now and then.

The set-up uses this module before anything is installed, so it imports the standard library alone.
"""

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

FIRST, EVERY = 5, 10  # seconds: when a log gets its first line, and how often the next
MOVING, AGAIN = 1, 0.2  # seconds: the same of the line that moves
CLEAR = "\r\x1b[K"


class _Display:
    """What this process shows."""

    def __init__(self) -> None:
        self.work: list[Callable[[], str]] = []  # Each within the one before.
        self.last_line = 0.0  # When the log got it.

    def show(self, describe: Callable[[], str], ended: threading.Event) -> None:
        started, moves = time.monotonic(), _moves()
        self.last_line = started - EVERY + FIRST
        while not ended.wait(AGAIN):
            now = time.monotonic()
            is_due = now - started >= MOVING if moves else now - self.last_line >= EVERY
            if not is_due or self.work[-1] is not describe:
                continue
            with suppress(OSError):  # A file that was counted has gone.
                text = f"    {describe()}, {now - started:.0f} s"
                if moves:
                    room = shutil.get_terminal_size().columns - 1
                    _write(f"{CLEAR}{text[:room]}")
                else:
                    _write(f"{text}\n")
                    self.last_line = now


_display = _Display()


@contextmanager
def progress(describe: Callable[[], str]) -> Iterator[None]:
    """Show what ``describe()`` returns, and for how long the block has been running.

    Of work within work, the inner one is shown. What other threads do is part of what the main
    thread shows, so there it has no effect.
    """
    if threading.current_thread() is not threading.main_thread() or _descriptor() is None:
        yield
        return
    ended = threading.Event()
    shower = threading.Thread(target=_display.show, args=(describe, ended), daemon=True)
    _display.work.append(describe)
    shower.start()
    try:
        yield
    finally:
        ended.set()
        shower.join()
        _display.work.pop()
        clear()


def note(text: str) -> None:
    """Print a line of a log. On a terminal, the line that moves says it."""
    if not (_display.work and _moves()):
        print(text, flush=True)
        _display.last_line = time.monotonic()


def clear() -> None:
    """Clear the line that moves, also after a process that was killed while it showed it."""
    if _moves():
        _write(CLEAR)


def _write(text: str) -> None:
    # Not with print(): a process that is forked meanwhile would wait for its lock for ever.
    os.write(sys.stdout.fileno(), text.encode())


def _moves() -> bool:
    descriptor = _descriptor()
    return descriptor is not None and os.isatty(descriptor) and os.environ.get("TERM") != "dumb"


def _descriptor() -> int | None:
    """Return the number of the standard output, or None where a test has replaced it."""
    with suppress(OSError, AttributeError):
        return sys.stdout.fileno()
    return None
