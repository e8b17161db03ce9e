"""The command line: read the arguments, run pytest on the checks, write the report."""

import argparse
import contextlib
import dataclasses
import os
import sys
from pathlib import Path

import pytest

from c10d_conformance import registry
from c10d_conformance.beside import Beside
from c10d_conformance.options import add_options, check_writable, lines_of, settings_of
from c10d_conformance.preparation import load_checks, prepared_pool
from c10d_conformance.registry import Check
from c10d_conformance.settings import Mistake, Settings

ERROR = 2  # the exit status for a wrong call; 1 says that a check failed, 0 that none did


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    new = argparse.ArgumentParser(
        prog="c10d-conformance",
        description="Test whether a torch.distributed backend keeps PyTorch's promises. The exit "
        "status is 0 if no check fails, 1 if one fails, 2 if the call is wrong or the suite fails.",
        epilog="c10d-conformance audit --help tells of the audit: what a backend inherits from "
        "PyTorch, what another release changes, and where PyTorch asks for the name of a backend.",
    )
    add_options(new.add_argument, "--")
    new.add_argument("-k", dest="expression", default="", metavar="EXPR", help="as for pytest")
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
    new.add_argument("--report", metavar="FILE", help="write the report as JSON")
    new.add_argument("--junit", metavar="FILE", help="write the report as JUnit XML")
    new.add_argument("--list", action="store_true", help="list the checks and their promises")
    new.add_argument("--verbose", action="store_true", help="show failures at once, and refusals")
    return new


def main(arguments: list[str] | None = None) -> int:
    """Run the suite, or the audit, and return the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        if given[:1] == ["audit"]:
            return _audit(given[1:])
        return _run(parser().parse_args(given))
    except Mistake as mistake:
        print(f"c10d-conformance: {mistake}", file=sys.stderr)
        return ERROR


def _audit(arguments: list[str]) -> int:
    # So that an error tells whether an inherited function has raised it. PyTorch reads this once.
    os.environ.setdefault("TORCH_SHOW_CPP_STACKTRACES", "1")
    try:
        from c10d_conformance import audit
    except ImportError as error:
        raise Mistake(f"the audit needs PyTorch 2.13 or later: {error}") from None
    return audit.main(arguments)


def _run(options: argparse.Namespace) -> int:
    if options.list:
        return _list(load_checks(), options.quick)
    _check_arguments(options)
    settings = settings_of(options, "--")
    with prepared_pool(settings) as pool, contextlib.closing(Beside(pool, settings)) as ranks:
        return _run_in(ranks, settings, options)


def _run_in(ranks: Beside, settings: Settings, options: argparse.Namespace) -> int:
    from c10d_conformance import report
    from c10d_conformance.progress import Progress

    claims = _claims(options.claims) if options.claims else None
    add_to = Path(options.add_claims) if options.add_claims else None
    before = _claims(add_to) if add_to and add_to.exists() else {}
    settings = dataclasses.replace(settings, claims=claims)
    progress = Progress(settings, ranks, options.report, options.verbose)
    # Only this plugin: what else is installed or set must not change the result.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)
    package = Path(__file__).parent
    call = ["--noconftest", "-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
    call += ["--capture=no", "-c", os.devnull, "--rootdir", str(package)]
    call += ["-k", options.expression] if options.expression else []
    call += [f"--junitxml={Path(options.junit).absolute()}"] if options.junit else []
    status = pytest.main(call, plugins=[progress])
    if status == pytest.ExitCode.USAGE_ERROR:
        raise Mistake(f"-k {options.expression!r} is no expression that pytest accepts")
    if status == pytest.ExitCode.INTERRUPTED:
        raise Mistake(f"interrupted after {len(progress.results)} checks")
    if progress.errors:
        raise Mistake(f"an error of the suite itself, in {progress.errors[0]}")
    if not progress.results:
        raise Mistake(f"no check matches -k {options.expression!r}")
    if add_to:
        add_to.write_text(report.claims_text(before, progress.report))
        print(f"{add_to}: {report.unclaimed_text(progress.report)}")
    return progress.report["status"]


def _check_arguments(options: argparse.Namespace) -> None:
    if not options.backend:
        raise Mistake("--backend is missing, for example: c10d-conformance --backend gloo")
    for name in ("report", "junit", "add_claims"):
        path = getattr(options, name)
        if path:
            check_writable(Path(path), name.replace("_", "-"))


def _claims(path: str | Path) -> dict[str, int]:
    """Read `check: number` from each line, into a dictionary."""
    ids, claims = {check.id for check in registry.CHECKS}, {}
    for number, check, cases in lines_of(path, "--claims"):
        if check not in ids:
            raise Mistake(f"{path}, line {number}: the suite has no check {check}; see --list")
        if not cases.isdecimal() or int(cases) < 1:
            raise Mistake(f"{path}, line {number}: give the number of right cases after a colon")
        claims[check] = int(cases)
    return claims


def _list(checks: list[Check], quick: bool) -> int:
    for check in checks:
        if check.quick or not quick:
            print(f"{check.id}  [{check.capability}]\n    {check.promise}\n    {check.source}")
    return 0
