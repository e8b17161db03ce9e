"""The one exception that ends a build with a message instead of a traceback."""

import re
import sys
from contextlib import contextmanager

from .paths import ROOT


class BuildError(Exception):
    """An error whose message says what went wrong, where, and what to do about it."""


@contextmanager
def ending_the_program():
    """End the program with the message of a BuildError, in programs that are not stages."""
    try:
        yield
    except BuildError as error:
        sys.exit(f"error: {error}")


def readable(output):
    """Return what a command printed, without terminal colours and this machine's paths."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", output).replace(f"{ROOT}/", "")
    # After a crash, Sphinx names a file in a temporary folder that is removed.
    return text.partition("The full traceback has been saved in:")[0].rstrip()
