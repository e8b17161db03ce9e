"""The plugin of a run from the command line: it shows the progress, and writes the report."""

import sys
import time
from collections import Counter
from typing import Any

import pytest

from c10d_conformance import report
from c10d_conformance.beside import Beside
from c10d_conformance.items import Collection, Item
from c10d_conformance.plugin import NODE, register_markers
from c10d_conformance.settings import Settings
from c10d_conformance.verdicts import FAILURES, worst


class Progress:
    """State of one run; pytest calls the methods whose names begin with `pytest_`."""

    def __init__(
        self, settings: Settings, pool: Beside, report_path: str | None, verbose: bool
    ) -> None:
        self.settings = settings
        self.pool = pool
        self.results: list[report.Result] = []
        self.report: dict[str, Any] = {}  # at the end
        self.errors: list[str] = []  # of the suite itself
        self._path = report_path
        self._verbose = verbose
        self._stream = sys.__stdout__ or sys.stdout
        self._live = self._stream.isatty()
        self._total = 0
        self._start = time.monotonic()

    def pytest_configure(self, config: pytest.Config) -> None:
        """Register the markers."""
        register_markers(config)

    def pytest_collection(self, session: pytest.Session) -> bool:
        """Take the checks of this run in place of tests in files."""
        collection = Collection.from_parent(session, name=NODE, nodeid=NODE, run=self)
        session.items = list(collection.collect())
        session.config.hook.pytest_collection_modifyitems(
            session=session, config=session.config, items=session.items
        )
        run = [item for item in session.items if isinstance(item, Item)]
        self.pool.plan(
            (item.check, item.size) for item in run if not self.settings.skip_reason(item.check)
        )
        session.testscollected = self._total = len(session.items)
        return True

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self._live:
            text = nodeid.rpartition("::")[2]
            self._stream.write(f"\r\033[K[{len(self.results) + 1}/{self._total}] {text}")
            self._stream.flush()

    def pytest_exception_interact(self, node: pytest.Item, call: pytest.CallInfo) -> None:
        """Keep an error that is not of the backend: its check has no result."""
        error = call.excinfo.value if call.excinfo else None
        if not isinstance(error, pytest.fail.Exception):
            self.errors.append(f"{node.name}: {type(error).__name__}: {error}")

    def pytest_sessionfinish(self) -> None:
        """Write the report and show the summary."""
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
