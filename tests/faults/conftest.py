"""Run the faults of the selected tests, two batches at a time, and show them as a table."""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import injection
import pytest

from tools.project.paths import ROOT


@pytest.fixture(scope="session")
def outcomes(request, tmp_path_factory):
    """A future with the outcome of each batch."""
    folder = tmp_path_factory.mktemp("faults")
    tests = [x for x in request.session.items if "fault" in x.fixturenames]
    selected = [test.callspec.params["fault"] for test in tests]
    healthy = injection.copy_project(ROOT, folder / "healthy")
    done = injection.run(healthy, "tools.html")
    assert done.status == 0, f"without any fault:\n{done.output}"
    batches = defaultdict(list)
    for fault in selected:
        batches[fault.batch].append(fault)
    with ThreadPoolExecutor(2) as pool:
        futures = {
            batch: pool.submit(injection.run_with, faults, healthy, folder / str(number))
            for number, (batch, faults) in enumerate(batches.items())
        }
        if tests := sorted({fault.test for fault in selected if fault.test}):
            futures["healthy"] = pool.submit(injection.run, healthy, "tests", tests)
        yield futures
        for future in futures.values():
            future.cancel()


def pytest_terminal_summary(terminalreporter):
    if injection.noticed:
        terminalreporter.section("faults, and what noticed them")
    for fault, noticed, seconds in sorted(injection.noticed, key=lambda row: row[0].area):
        by = (fault.test or fault.run) if noticed else f"nothing: {fault.survives}"
        shared = "" if fault.alone else ", with others"
        terminalreporter.write_line(f"{fault.area:13} {fault.id:42} {by} ({seconds:.0f} s{shared})")
