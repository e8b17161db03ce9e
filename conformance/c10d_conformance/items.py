"""Checks as tests of pytest, for the command line and beside an author's own tests."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from c10d_conformance import registry, report
from c10d_conformance.plugin import MARKER
from c10d_conformance.registry import Check
from c10d_conformance.settings import Mistake, Settings
from c10d_conformance.verdicts import FAILURES, REFUSED, Outcome, worst


class Ranks(Protocol):
    """Runs checks: a pool, or the server that has one."""

    def timed(self, check: Check, size: int) -> tuple[list[Outcome], float]:
        """Return the outcomes of a check with `size` ranks, and its seconds."""


class Run(Protocol):
    """A plugin that has items."""

    settings: Settings
    pool: Ranks

    def add(self, result: report.Result) -> None:
        """Keep or show the result of a check."""


class Collection(pytest.Collector):
    """All checks of a run, in their order: one world size after another."""

    def __init__(self, *, run: Run, **options: Any) -> None:
        super().__init__(**options)
        self.run = run

    def collect(self) -> "Iterator[Item]":
        settings, checks = self.run.settings, registry.load()
        for number, size in enumerate(settings.ranks):
            for check in checks:
                if (settings.quick and not check.quick) or not settings.has(check):
                    continue
                if settings.claims is not None and check.id not in settings.claims:
                    continue
                if check.ranks:  # those with their own sizes run once
                    sizes = check.ranks if number == 0 else ()
                else:
                    sizes = (size,) if size >= check.minimum else ()
                for ranks in sizes:
                    name = f"{check.id}[{ranks}]"
                    # The text of the id is given because pytest 9.2 reads the number of ranks in
                    # it as parameters, and --lf compares what it has read.
                    yield Item.from_parent(
                        self,
                        name=name,
                        nodeid=f"{self.nodeid}::{name}",
                        check=check,
                        size=ranks,
                        run=self.run,
                    )


class Item(pytest.Item):
    """One check with one world size."""

    def __init__(self, *, check: Check, size: int, run: Run, **options: Any) -> None:
        super().__init__(**options)
        self.check = check
        self.size = size
        self.run = run
        self.extra_keyword_matches.update({check.capability, check.id})
        self.add_marker(MARKER)
        self.add_marker(f"{MARKER}_{check.capability}")
        self.user_properties += [
            ("capability", check.capability),
            ("promise", check.promise),
            ("source", check.source),
        ]

    def runtest(self) -> None:
        run = self.run
        reason = run.settings.skip_reason(self.check)
        if reason:
            run.add(report.Result(self.check, self.size, [], 0.0, f"skipped: {reason}"))
            pytest.skip(reason)
        outcomes, seconds = run.pool.timed(self.check, self.size)
        result = report.Result(self.check, self.size, outcomes, seconds)
        run.add(result)
        counts = Counter(outcome.verdict for outcome in outcomes)
        self.user_properties += [(f"verdict {key}", count) for key, count in counts.items()]
        verdict = worst(counts)
        if verdict in FAILURES:
            pytest.fail(report.failures_text([report.entry(result)]), pytrace=False)
        if verdict == REFUSED:
            pytest.skip(f"refused: {outcomes[0].text.splitlines()[0]}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo, style: Any = None) -> Any:
        if isinstance(excinfo.value, (pytest.fail.Exception, Mistake)):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[str, None, str]:
        # Not the name: pytest would show its dots as colons, and the id could not be copied.
        title = f"{self.check.id} ({self.size} ranks)"
        return self.check.function.__code__.co_filename, None, title
