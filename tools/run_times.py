"""Take over the measured run times of the samples, for the pages to show.

usage: python -m tools.run_times

Every execution is measured, of the samples, of the compiler and of the commands that
readers are told to type; the figures stay in _build, because they differ each time. This
writes them, rounded up to five seconds, into gallery/run_seconds.json, which is committed:
two builds of one commit show the same times. Those commands are run by the tests: without
a new figure, they keep the one that they have.
"""

import json
import math
import sys

from .execute import measured_seconds, samples
from .paths import RUN_SECONDS, relative
from .provenance import COMMANDS_TEST, noted_seconds

STEP = 5  # seconds
OTHER_RUNS = ["compile", COMMANDS_TEST]


def main():
    measured = {script.stem: measured_seconds(script) for script in samples()}
    missing = [name for name, seconds in measured.items() if seconds is None]
    if missing:
        sys.exit(f"error: not measured: {', '.join(missing)}; run `make execute` first")
    for name in OTHER_RUNS:
        if (seconds := noted_seconds(name)) is not None:
            measured[name] = seconds
    rounded = {name: math.ceil(x / STEP) * STEP for name, x in measured.items()}
    known = json.loads(RUN_SECONDS.read_text())
    kept = {name: known[name] for name in OTHER_RUNS if name in known}
    RUN_SECONDS.write_text(json.dumps(kept | rounded, indent=2, sort_keys=True) + "\n")
    print(f"wrote {relative(RUN_SECONDS)}: {sum(measured.values()):.0f} s in all")


if __name__ == "__main__":
    main()
