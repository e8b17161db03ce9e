"""The options that say what is tested, which the command line and the plugin of pytest share."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from c10d_conformance.settings import EXAMPLES, LIMIT, Mistake, Settings

MOST = 64  # ranks, and simulated hosts


_OPTIONS: dict[str, dict[str, Any]] = {
    "backend": {"metavar": "NAME", "help": "the name for init_process_group"},
    "import": {"metavar": "MODULE", "help": "a module that registers the backend"},
    "device": {
        "default": "cpu",
        "metavar": "TYPE",
        "help": "type of the device of all tensors, of which each rank makes one current (cpu)",
    },
    "blocking-wait": {
        "action": "store_true",
        "help": "on an accelerator: wait() blocks the host, and not only the current stream",
    },
    "ranks": {"default": "2,4", "metavar": "N[,N]", "help": "world sizes (2,4)"},
    "hosts": {
        "type": int,
        "default": 1,
        "metavar": "N",
        "help": "on how many hosts the ranks are, which namespaces of Linux simulate (1)",
    },
    "quick": {"action": "store_true", "help": "each capability once, with 2 ranks"},
    "skips": {"metavar": "FILE", "help": "lines of `pattern: reason` of checks to skip"},
    "limit": {
        "type": float,
        "default": LIMIT,
        "metavar": "SECONDS",
        "help": f"a case hangs if no rank makes progress for so long ({LIMIT:g})",
    },
    "seed": {
        "type": int,
        "default": 0,
        "metavar": "N",
        "help": "draw other inputs in the checks generated.* (0)",
    },
    "examples": {
        "type": int,
        "default": EXAMPLES,
        "metavar": "N",
        "help": f"how many inputs each of these checks draws ({EXAMPLES})",
    },
}


def add_options(add: Callable[..., Any], start: str, names: Iterable[str] = _OPTIONS) -> None:
    """Add options to a parser, by its method; their names begin with `start`, as --c10d-."""
    for name in names:
        add(start + name, dest=_attribute(start + name), **_OPTIONS[name])


def _attribute(option: str) -> str:
    return option.strip("-").replace("-", "_")


def settings_of(options: object, start: str) -> Settings:
    """Return what options that were parsed say, without checks. Raises Mistake if it is wrong."""
    given = {name: getattr(options, _attribute(start + name)) for name in _OPTIONS}
    ranks = _ranks(given["ranks"], start)
    if given["blocking-wait"] and given["device"] == "cpu":
        raise Mistake(f"{start}blocking-wait is for an accelerator, which {start}device names")
    if not 1 <= given["hosts"] <= MOST:
        raise Mistake(f"{start}hosts {given['hosts']}: give a number from 1 to {MOST}")
    if given["limit"] <= 0:
        raise Mistake(f"{start}limit must be more than 0 seconds")
    if given["examples"] < 1:
        raise Mistake(f"{start}examples {given['examples']}: give a number from 1 on")
    return Settings(
        backend=given["backend"],
        module=given["import"],
        device=given["device"],
        blocking_wait=given["blocking-wait"],
        ranks=(2,) if given["quick"] else ranks,
        hosts=given["hosts"],
        quick=given["quick"],
        limit=given["limit"],
        seed=given["seed"],
        examples=given["examples"],
        skips=_skips(given["skips"], start) if given["skips"] else [],
        start=start,
    )


def _ranks(text: str, start: str) -> tuple[int, ...]:
    sizes: tuple[int, ...] = ()
    with contextlib.suppress(ValueError):
        sizes = tuple(int(part) for part in text.split(","))
    if not sizes or min(sizes) < 1 or max(sizes) > MOST:
        raise Mistake(
            f"{start}ranks {text}: give numbers from 1 to {MOST} with commas, for example 2,4"
        )
    return tuple(dict.fromkeys(sizes))


def _skips(path: str, start: str) -> list[tuple[str, str]]:
    """Read `pattern: reason` from each line that is neither empty nor a comment."""
    skips = []
    for number, pattern, reason in lines_of(path, f"{start}skips"):
        if not reason:
            raise Mistake(f"{start}skips {path}, line {number}: a reason is missing after a colon")
        skips.append((pattern, reason))
    return skips


def lines_of(path: str | Path, option: str) -> Iterator[tuple[int, str, str]]:
    """Yield the number and both parts of each line `one: other` that is no comment."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError as error:
        raise Mistake(f"{option} {path} cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            one, _, other = line.partition(":")
            yield number, one.strip(), other.strip()


def check_writable(path: Path, option: str) -> None:
    """Raise Mistake if the file of an option cannot be written, before a run that takes long."""
    existed = path.exists()
    try:
        with path.open("a"):
            pass
    except OSError as error:
        raise Mistake(f"--{option} {path} cannot be written: {error.strerror}") from None
    if not existed:
        with contextlib.suppress(OSError):
            path.unlink()
