"""The plugin that makes checks pytest tests, runs them, and shows the progress."""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from c10d_conformance import report
from c10d_conformance.pool import Pool
from c10d_conformance.registry import Check
from c10d_conformance.settings import Settings
from c10d_conformance.verdicts import FAILURES, REFUSED, worst


class Plugin:
    """State of one run; pytest calls the methods whose names begin with `pytest_`."""

    def __init__(self, settings: Settings, report_path: str | None, verbose: bool) -> None:
        self.settings = settings
        self.results: list[report.Result] = []
        self.report: dict[str, Any] = {}  # at the end
        self.pool = Pool(settings)
        self._path = report_path
        self._verbose = verbose
        self._stream = sys.__stdout__ or sys.stdout
        self._live = self._stream.isatty()
        self._total = 0
        self._start = time.monotonic()

    def pytest_collection(self, session: pytest.Session) -> bool:
        """Take the checks of this run in place of tests in files."""
        collection = Collection.from_parent(session, name="checks", plugin=self)
        session.items = list(collection.collect())
        session.config.hook.pytest_collection_modifyitems(
            session=session, config=session.config, items=session.items
        )
        session.testscollected = self._total = len(session.items)
        return True

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self._live:
            text = nodeid.rpartition("::")[2]
            self._stream.write(f"\r\033[K[{len(self.results) + 1}/{self._total}] {text}")
            self._stream.flush()

    def pytest_sessionfinish(self) -> None:
        """End the ranks, write the report and show the summary."""
        self.pool.close()
        if not self.results:
            return
        seconds = time.monotonic() - self._start
        self.report = report.content(self.settings, self.results, seconds)
        if self._path:
            report.write(self.report, self._path)
        if self._live:
            self._stream.write("\r\033[K")
        self._stream.write(report.summary(self.report, self._verbose))
        self._stream.flush()

    def add(self, result: report.Result) -> None:
        """Keep the result of a check and show it in a line."""
        self.results.append(result)
        counts = Counter(outcome.verdict for outcome in result.outcomes)
        numbers = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        line = f"[{len(self.results)}/{self._total}] {result.check.id} ({result.size} ranks): "
        line += (result.skipped or numbers) + f" ({result.seconds:.1f} s)"
        failed = worst(counts) in FAILURES
        if self._live:
            self._stream.write("\r\033[K")
        if failed or not self._live:
            self._stream.write(("FAILED " if failed else "       ") + line + "\n")
        if failed and self._verbose:
            self._stream.write(report.failures_text([report.entry(result)]) + "\n")
        self._stream.flush()


class Collection(pytest.Collector):
    """All checks of a run, in their order: one world size after another."""

    def __init__(self, *, plugin: Plugin, **options: Any) -> None:
        super().__init__(**options)
        self.plugin = plugin

    def collect(self) -> "Iterator[Item]":
        settings = self.plugin.settings
        for number, size in enumerate(settings.ranks):
            for check in settings.checks:
                if (settings.quick and not check.quick) or not settings.has(check):
                    continue
                if settings.claims is not None and check.id not in settings.claims:
                    continue
                if check.ranks:  # those with their own sizes run once
                    sizes = check.ranks if number == 0 else ()
                else:
                    sizes = (size,) if size >= check.minimum else ()
                for ranks in sizes:
                    yield Item.from_parent(
                        self,
                        name=f"{check.id}[{ranks}]",
                        check=check,
                        size=ranks,
                        plugin=self.plugin,
                    )


class Item(pytest.Item):
    """One check with one world size."""

    def __init__(self, *, check: Check, size: int, plugin: Plugin, **options: Any) -> None:
        super().__init__(**options)
        self.check = check
        self.size = size
        self.plugin = plugin
        self.extra_keyword_matches.update({check.capability, check.id})
        self.user_properties += [
            ("capability", check.capability),
            ("promise", check.promise),
            ("source", check.source),
        ]

    def runtest(self) -> None:
        plugin = self.plugin
        reason = plugin.settings.skip_reason(self.check)
        if reason:
            plugin.add(report.Result(self.check, self.size, [], 0.0, f"skipped: {reason}"))
            pytest.skip(reason)
        start = time.monotonic()
        outcomes = plugin.pool.run(self.check, self.size)
        result = report.Result(self.check, self.size, outcomes, time.monotonic() - start)
        plugin.add(result)
        counts = Counter(outcome.verdict for outcome in outcomes)
        self.user_properties += [(f"verdict {key}", count) for key, count in counts.items()]
        verdict = worst(counts)
        if verdict in FAILURES:
            pytest.fail(report.failures_text([report.entry(result)]), pytrace=False)
        if verdict == REFUSED:
            pytest.skip(f"refused: {outcomes[0].text.splitlines()[0]}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo, style: Any = None) -> Any:
        if isinstance(excinfo.value, pytest.fail.Exception):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[str, None, str]:
        return self.check.function.__code__.co_filename, None, self.name
