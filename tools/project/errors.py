"""The one exception that ends a build with a message instead of a traceback."""

import inspect
import re
import sys
from collections.abc import Callable
from types import TracebackType

from .paths import ROOT


class BuildError(Exception):
    """An error whose message says what went wrong, where, and what to do about it."""


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show a BuildError as ``run_command`` does, also that of a file that an import reads."""
    if isinstance(error, BuildError):
        print(f"error: {error}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _show


def run_command(work: Callable[..., object], usage: str | None) -> None:
    """Call ``work`` with the arguments of the command line, in programs that are no stages.

    End the program with ``usage`` if ``work`` does not take them, and with the message of a
    BuildError.
    """
    arguments = arguments_for(work, usage)
    try:
        work(*arguments)
    except BuildError as error:
        sys.exit(f"error: {error}")


def arguments_for(work: Callable[..., object], usage: str | None) -> list[str]:
    """Return those of the command line, or end the program with ``usage``."""
    try:
        inspect.signature(work).bind(*sys.argv[1:])
    except TypeError:
        sys.exit(usage)
    return sys.argv[1:]


def readable(output: str) -> str:
    """Return what a command printed, without terminal colours and this machine's paths."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", output).replace(f"{ROOT}/", "")
    # After a crash, Sphinx names a file in a temporary folder that is removed.
    return text.partition("The full traceback has been saved in:")[0].rstrip()
