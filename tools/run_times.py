"""Measure how long each sample takes a reader; the pages show it.

usage: python -m tools.run_times

Runs the samples one after the other, with a new interpreter for each rank, and compiles the
extension from nothing. Writes the times, rounded up to five seconds, into
gallery/run_seconds.json. This file is committed: two builds of one commit show the same times.
Commands that readers type have the time of their last run.
"""

import json
import math
import shutil
import time

from .compile.compilation import compile_extension
from .compile.extensions import EXTENSIONS
from .execute.execution import run_sample
from .execute.samples import page_of, samples
from .pages.provenance import recorded_runs
from .processes.run import forget_steering
from .project.configuration import read
from .project.errors import run_command
from .project.paths import BUILD, INSTALLED_EXTENSIONS, RUN_SECONDS, relative

STEP = 5  # seconds


def main() -> None:
    forget_steering()
    shutil.rmtree(INSTALLED_EXTENSIONS, ignore_errors=True)
    for extension in EXTENSIONS:
        compile_extension(extension)
    # Of compilations and commands, the time is that of the last run.
    runs = recorded_runs().items()
    recorded = {name: run.record.load() for name, run in runs if run.kind != "sample"}
    measured = {name: record and record["seconds"] for name, record in recorded.items()}
    for script in samples():
        page = page_of(script)
        started = time.monotonic()
        run_sample(script, BUILD / "run_times" / page)
        measured[page] = time.monotonic() - started
        print(f"{measured[page]:6.1f} s  {relative(script)}", flush=True)
    before = read(RUN_SECONDS, dict)
    rounded = {
        name: before.get(name) if seconds is None else math.ceil(seconds / STEP) * STEP
        for name, seconds in measured.items()
    }
    RUN_SECONDS.write_text(json.dumps(rounded, indent=2, sort_keys=True) + "\n")
    print(f"wrote {relative(RUN_SECONDS)}")


if __name__ == "__main__":
    run_command(main, __doc__)
