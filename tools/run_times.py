"""Measure how long a sample takes a reader; the pages show it.

usage: python -m tools.run_times [PAGE]

Measures the samples that have no time yet, or whose code has changed since, and with a PAGE, such
as "right/training", that one. They run one after the other, with a new interpreter for each rank.
The times, rounded up to five seconds, are in gallery/run_seconds.json, which is committed: two
builds of one commit show the same times. A compilation or a command for readers that has no time
gets that of its last run.
"""

import math
import time
from typing import Any

from .compile.compilation import compile_extension
from .execute import run_seconds
from .execute.execution import run_sample
from .execute.samples import extensions_of, page_of, samples
from .pages.provenance import recorded_runs
from .processes.one_build import main, stage
from .processes.progress import progress
from .project.errors import BuildError
from .project.paths import BUILD, RUN_SECONDS, relative

STEP = 5  # seconds


@stage("run-times")
def measure(page: str = "") -> None:
    by_page = {page_of(script): script for script in samples()}
    if page and page not in by_page:
        raise BuildError(f"{page} is no page of a sample, such as {next(iter(by_page))}")
    runs, before = recorded_runs(), run_seconds.entries()
    entries = {name: entry for name, entry in before.items() if name in runs}
    stale = [page] if page else [x for x in by_page if _is_stale(entries.get(x), by_page[x])]
    for number, name in enumerate(stale):
        code = run_seconds.code_of(by_page[name])
        seconds = _measured(by_page[name], f"{number} of {len(stale)} samples measured; now {name}")
        entries[name] = _entry(seconds, code=code)
        run_seconds.write(entries)  # An interrupt loses only the sample that is being measured.
        print(f"{seconds:6.1f} s  {relative(by_page[name])}", flush=True)
    for name in runs.keys() - entries.keys() - by_page.keys():
        if recorded := runs[name].record.load():
            entries[name] = _entry(recorded["seconds"])
    run_seconds.write(entries)
    result = f"wrote {relative(RUN_SECONDS)}" if entries != before else "no time has changed"
    print(f"    {len(stale)} of {len(by_page)} samples measured; {result}")


def _is_stale(entry, script):
    return entry is None or entry.get("code") != run_seconds.code_of(script)


def _measured(script, text):
    """Return how many seconds a sample takes, without what is compiled before; show a text."""
    with progress(lambda: text):
        for extension in extensions_of(script):
            compile_extension(extension)
        started = time.monotonic()
        run_sample(script, BUILD / "run_times" / page_of(script))
        return time.monotonic() - started


def _entry(seconds: float, **facts: str) -> dict[str, Any]:
    return {"seconds": math.ceil(seconds / STEP) * STEP, **facts}


if __name__ == "__main__":
    main(measure, usage=__doc__)
