"""Compare the shared-memory backend with gloo, and with a backend that does nothing.

usage: python -m tools.bench_backend

All backends run in the same ranks, in turns whose order changes, so that whatever else the
machine does meets all of them. Every sample is the time of the slowest rank. Prints medians with
quartiles, and which goals are met; writes _build/bench-backend.json. Takes about four minutes;
nothing else should run meanwhile. `make accept-bench-backend` commits the result to the project.
"""

import json
import sys

import torch

from .measure.cases import all_cases
from .measure.machine import machine
from .measure.ranks import measure
from .measure.summary import goals_table
from .processes.run import forget_steering
from .project.errors import ending_the_program
from .project.paths import BACKEND_MEASURED, INSTALLED_EXTENSIONS, relative

RANKS = (2, 4)
ROUNDS = 21
LIMIT = 900  # seconds, for the ranks of one group


def main():
    forget_steering()
    sys.path.insert(0, str(INSTALLED_EXTENSIONS))  # The ranks inherit it.
    records = [x for ranks in RANKS for x in measure(ranks, all_cases(), ROUNDS, LIMIT)]
    result = {"machine": machine(), "torch": torch.__version__, "cases": records}
    BACKEND_MEASURED.parent.mkdir(exist_ok=True)
    BACKEND_MEASURED.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    print(f"\n{goals_table(records)}\n\nwritten to {relative(BACKEND_MEASURED)}")


if __name__ == "__main__":
    with ending_the_program():
        main()
