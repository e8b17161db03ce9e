"""The command line: read the arguments, run pytest on the checks, write the report."""

import argparse
import contextlib
import multiprocessing
import os
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from c10d_conformance import registry
from c10d_conformance.hosts import MOST, Host, HostsError, simulated_hosts
from c10d_conformance.registry import Check
from c10d_conformance.settings import LIMIT, Settings

ERROR = 2  # the exit status for a wrong call; 1 says that a check failed, 0 that none did


class Mistake(Exception):
    """The command line cannot be carried out; the text says why."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    new = argparse.ArgumentParser(
        prog="c10d-conformance",
        description="Test whether a torch.distributed backend keeps PyTorch's promises. The exit "
        "status is 0 if no check fails, 1 if one fails, 2 if the call is wrong.",
    )
    new.add_argument("--backend", metavar="NAME", help="the name for init_process_group")
    new.add_argument(
        "--import", dest="module", metavar="MODULE", help="a module that registers the backend"
    )
    new.add_argument(
        "--device",
        default="cpu",
        help="type of the device of all tensors, of which each rank makes one current (cpu)",
    )
    new.add_argument(
        "--blocking-wait",
        action="store_true",
        help="on an accelerator: wait() blocks the host, and not only the current stream",
    )
    new.add_argument("--ranks", default="2,4", metavar="N[,N]", help="world sizes (2,4)")
    new.add_argument(
        "--hosts",
        type=int,
        default=1,
        metavar="N",
        help="on how many hosts the ranks are, which namespaces of Linux simulate (1)",
    )
    new.add_argument("-k", dest="expression", default="", metavar="EXPR", help="as for pytest")
    new.add_argument("--quick", action="store_true", help="each capability once, with 2 ranks")
    new.add_argument("--skips", metavar="FILE", help="lines of `pattern: reason` of checks to skip")
    new.add_argument(
        "--claims",
        metavar="FILE",
        help="lines of `check: number`: run these checks, and fail if fewer cases are right",
    )
    new.add_argument(
        "--add-claims",
        metavar="FILE",
        help="write such lines for the checks that are right",
    )
    new.add_argument(
        "--limit",
        type=float,
        default=LIMIT,
        metavar="SECONDS",
        help=f"a case hangs if no rank makes progress for so long ({LIMIT:g})",
    )
    new.add_argument("--report", metavar="FILE", help="write the report as JSON")
    new.add_argument("--junit", metavar="FILE", help="write the report as JUnit XML")
    new.add_argument("--list", action="store_true", help="list the checks and their promises")
    new.add_argument("--verbose", action="store_true", help="show failures at once, and refusals")
    return new


def main(arguments: list[str] | None = None) -> int:
    """Run the suite and return the exit status."""
    options = parser().parse_args(arguments)
    try:
        return _run(options)
    except (Mistake, HostsError) as mistake:
        print(f"c10d-conformance: {mistake}", file=sys.stderr)
        return ERROR


def _run(options: argparse.Namespace) -> int:
    _check_arguments(options)
    # The hosts come first: libraries start threads, and a process with threads may not have them.
    with contextlib.ExitStack() as stack:
        several = options.hosts > 1 and not options.list
        hosts = stack.enter_context(simulated_hosts(options.hosts)) if several else []
        return _run_on(hosts, options)


def _run_on(hosts: list[Host], options: argparse.Namespace) -> int:
    try:
        from c10d_conformance import report
        from c10d_conformance.plugin import Plugin
    except ImportError as error:
        raise Mistake(f"the suite needs PyTorch 2.13 or later and pytest 8: {error}") from None
    checks = registry.load()
    if options.list:
        return _list(checks, options.quick)
    settings = Settings(
        backend=options.backend,
        module=options.module,
        device=options.device,
        blocking_wait=options.blocking_wait,
        ranks=(2,) if options.quick else _ranks(options.ranks),
        hosts=hosts,
        quick=options.quick,
        limit=options.limit,
        skips=_skips(options.skips),
        claims=_claims(options.claims, checks) if options.claims else None,
        checks=checks,
    )
    add_to = Path(options.add_claims) if options.add_claims else None
    before = _claims(add_to, checks) if add_to and add_to.exists() else {}
    _probe(settings)
    plugin = Plugin(settings, options.report, options.verbose)
    # Only this plugin: what else is installed must not change the result.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    package = Path(__file__).parent
    call = ["-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
    call += ["--capture=no", "-c", os.devnull, "--rootdir", str(package)]
    call += ["-k", options.expression] if options.expression else []
    call += [f"--junitxml={Path(options.junit).absolute()}"] if options.junit else []
    status = pytest.main(call, plugins=[plugin])
    if status == pytest.ExitCode.USAGE_ERROR:
        raise Mistake(f"-k {options.expression!r} is no expression that pytest accepts")
    if status == pytest.ExitCode.INTERRUPTED:
        raise Mistake(f"interrupted after {len(plugin.results)} checks")
    if not plugin.results:
        raise Mistake(f"no check matches -k {options.expression!r}")
    if add_to:
        add_to.write_text(report.claims_text(before, plugin.report))
        print(f"{add_to}: {report.unclaimed_text(plugin.report)}")
    return plugin.report["status"]


def _check_arguments(options: argparse.Namespace) -> None:
    if options.list:
        return
    if not options.backend:
        raise Mistake("--backend is missing, for example: c10d-conformance --backend gloo")
    _ranks(options.ranks)
    if options.blocking_wait and options.device == "cpu":
        raise Mistake("--blocking-wait is for an accelerator, which --device names")
    if not 1 <= options.hosts <= MOST:
        raise Mistake(f"--hosts {options.hosts}: give a number from 1 to {MOST}")
    if options.limit <= 0:
        raise Mistake("--limit must be more than 0 seconds")
    for name in ("report", "junit", "add_claims"):
        path = getattr(options, name)
        if path:
            _check_writable(Path(path), name.replace("_", "-"))


def _check_writable(path: Path, option: str) -> None:
    existed = path.exists()
    try:
        with path.open("a"):
            pass
    except OSError as error:
        raise Mistake(f"--{option} {path} cannot be written: {error.strerror}") from None
    if not existed:
        with contextlib.suppress(OSError):
            path.unlink()


def _ranks(text: str) -> tuple[int, ...]:
    sizes: tuple[int, ...] = ()
    with contextlib.suppress(ValueError):
        sizes = tuple(int(part) for part in text.split(","))
    if not sizes or min(sizes) < 1 or max(sizes) > 64:
        raise Mistake(f"--ranks {text}: give numbers from 1 to 64 with commas, for example 2,4")
    return tuple(dict.fromkeys(sizes))


def _skips(path: str | None) -> list[tuple[str, str]]:
    """Read `pattern: reason` from each line that is neither empty nor a comment."""
    if path is None:
        return []
    skips = []
    for number, pattern, reason in _lines(path, "skips"):
        if not reason:
            raise Mistake(f"--skips {path}, line {number}: a reason is missing after a colon")
        skips.append((pattern, reason))
    return skips


def _claims(path: str | Path, checks: list[Check]) -> dict[str, int]:
    """Read `check: number` from each line, into a dictionary."""
    ids, claims = {check.id for check in checks}, {}
    for number, check, cases in _lines(path, "claims"):
        if check not in ids:
            raise Mistake(f"{path}, line {number}: the suite has no check {check}; see --list")
        if not cases.isdecimal() or int(cases) < 1:
            raise Mistake(f"{path}, line {number}: give the number of right cases after a colon")
        claims[check] = int(cases)
    return claims


def _lines(path: str | Path, option: str) -> Iterator[tuple[int, str, str]]:
    """Yield the number and both parts of each line `one: other` that is no comment."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError as error:
        raise Mistake(f"--{option} {path} cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            one, _, other = line.partition(":")
            yield number, one.strip(), other.strip()


def _list(checks: list[Check], quick: bool) -> int:
    for check in checks:
        if check.quick or not quick:
            print(f"{check.id}  [{check.capability}]\n    {check.promise}\n    {check.source}")
    return 0


def _probe(settings: Settings) -> None:
    """Import the backend in a process of its own, so that this one stays able to fork."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_try_import, args=(settings, theirs), daemon=True)
    process.start()
    theirs.close()
    problem: str | None = f"importing {settings.module} ended the process"
    if ours.poll(120):
        with contextlib.suppress(EOFError):
            problem = ours.recv()
    else:
        problem = f"importing {settings.module} takes more than 120 s"
    process.kill()
    process.join()
    if problem:
        raise Mistake(problem)


def _try_import(settings: Settings, pipe: Connection) -> None:
    import torch
    import torch.distributed as dist

    from c10d_conformance.pool import import_backend

    problem = None
    try:
        import_backend(settings)
    except BaseException as error:
        option = (
            f"--import {settings.module}" if settings.module else f"--backend {settings.backend}"
        )
        problem = f"{option} fails: {type(error).__name__}: {error}"
    names = [name.lower() for name in dist.Backend.backend_list]
    if not problem and settings.backend.lower() not in names:
        problem = (
            f"no backend is called {settings.backend!r}; known are "
            f"{', '.join(name for name in names if name != 'undefined')}. "
            "Give the module that registers it with --import."
        )
    if not problem:
        try:
            if torch.device(settings.device).type != "cpu":
                torch.empty(1, device=settings.device)
        except Exception as error:
            problem = f"--device {settings.device}: {error}"
    pipe.send(problem)
