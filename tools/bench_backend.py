"""Compare the shared-memory backend, or a library, with gloo.

usage: python -m tools.bench_backend [shm | mpich]

All backends run in the same ranks, in turns whose order changes, so that whatever else the
machine does meets all of them. Every sample is the time of the slowest rank. All of it runs
several times, in new processes, because the times of gloo differ most from run to run. Prints
the median of the runs and their range. Nothing else should run meanwhile.

shm is also compared with a backend that does nothing; mpich with shm, over TCP, and on two
simulated hosts, which needs root or user namespaces. Takes about six minutes; writes a table into
_build, which `make accept-bench-backend` commits to the project.
"""

import os
import sys
import time
from typing import Any

import torch

from .measure.cases import of_a_library, of_shared_memory
from .measure.machine import machine
from .measure.ranks import measure
from .measure.summary import as_csv, lines, place_text, rows
from .processes.run import forget_inherited_settings
from .project.errors import BuildError, run_command
from .project.paths import INSTALLED_EXTENSIONS, MEASURED, MEASUREMENTS, relative

RUNS = 5
ROUNDS = 3
LIMIT = 300  # seconds, for the ranks of one group


def main(backend: str = "shm") -> None:
    forget_inherited_settings()
    sys.path.insert(0, str(INSTALLED_EXTENSIONS))  # The ranks inherit it.
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # The simulated device lies there, too.
    if backend not in MEASUREMENTS:
        raise BuildError(f"{backend} is not compared: BACKEND is {' or '.join(MEASUREMENTS)}")
    setups = of_shared_memory() if backend == "shm" else of_a_library()
    runs: list[list[Any]] = [[] for _ in setups]
    for number in range(RUNS):
        for results, setup in zip(runs, setups, strict=True):
            start = time.monotonic()
            results.append(measure(setup, ROUNDS, LIMIT))
            place, took = place_text(setup.place()), f"{time.monotonic() - start:.0f} s"
            print(f"run {number + 1}: {setup.ranks} ranks, {place}: {took}", flush=True)
    table = [
        row
        for of_setup, setup in zip(runs, setups, strict=True)
        for case, times in zip(setup.cases, zip(*of_setup, strict=True), strict=True)
        for row in rows(case, setup, times)
    ]
    measured = MEASURED / MEASUREMENTS[backend].name
    measured.parent.mkdir(parents=True, exist_ok=True)
    measured.write_text(as_csv(table, f"{machine()}, PyTorch {torch.__version__}"))
    print("", *lines(table), sep="\n")
    print(f"\nwritten to {relative(measured)}")


if __name__ == "__main__":
    run_command(main, __doc__)
