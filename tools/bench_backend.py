"""Compare the shared-memory backend with gloo, and with a backend that does nothing.

usage: python -m tools.bench_backend

All backends run in the same ranks, in turns whose order changes, so that whatever else the
machine does meets all of them. Every sample is the time of the slowest rank. All of it runs
several times, in new processes, because the times of gloo differ most from run to run. Prints
the median of the runs and their range, and which goals are met; writes _build/bench-backend.csv.
Takes about five minutes; nothing else should run meanwhile. `make accept-bench-backend` commits
the result to the project.
"""

import os
import sys
import time
from typing import Any

import torch

from .measure.cases import configurations
from .measure.machine import machine
from .measure.ranks import measure
from .measure.summary import as_csv, goals_table, lines, rows
from .processes.run import forget_steering
from .project.errors import run_command
from .project.paths import BACKEND_MEASURED, INSTALLED_EXTENSIONS, relative

RUNS = 5
ROUNDS = 3
LIMIT = 300  # seconds, for the ranks of one group


def main() -> None:
    forget_steering()
    sys.path.insert(0, str(INSTALLED_EXTENSIONS))  # The ranks inherit it.
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # The simulated device lies there, too.
    runs: list[list[Any]] = [[] for _ in configurations()]
    for number in range(RUNS):
        for results, (ranks, sessions, cases) in zip(runs, configurations(), strict=True):
            start = time.monotonic()
            results.append(measure(ranks, sessions, cases, ROUNDS, LIMIT))
            took = f"{time.monotonic() - start:.0f} s"
            print(f"run {number + 1}: {ranks} ranks, {sessions} sessions: {took}", flush=True)
    table = [
        row
        for of_group, (ranks, sessions, cases) in zip(runs, configurations(), strict=True)
        for case, times in zip(cases, zip(*of_group, strict=True), strict=True)
        for row in rows(case, ranks, sessions, times)
    ]
    BACKEND_MEASURED.parent.mkdir(exist_ok=True)
    BACKEND_MEASURED.write_text(as_csv(table, f"{machine()}, PyTorch {torch.__version__}"))
    print("", *lines(table), "", goals_table(table), sep="\n")
    print(f"\nwritten to {relative(BACKEND_MEASURED)}")


if __name__ == "__main__":
    run_command(main, __doc__)
