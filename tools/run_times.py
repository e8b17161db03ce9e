"""Take over the measured run times of the samples, for the pages to show.

usage: python -m tools.run_times

Every execution of a sample is measured; the figures stay in _build, because they differ
each time. This writes them, rounded up to five seconds, into gallery/run_seconds.json,
which is committed: two builds of one commit show the same times.
"""

import json
import math
import sys

from .execute import measured_seconds, samples
from .paths import RUN_SECONDS, relative

STEP = 5  # seconds


def main():
    measured = {script.stem: measured_seconds(script) for script in samples()}
    missing = [name for name, seconds in measured.items() if seconds is None]
    if missing:
        sys.exit(f"error: not measured: {', '.join(missing)}; run `make execute` first")
    rounded = {name: math.ceil(x / STEP) * STEP for name, x in measured.items()}
    RUN_SECONDS.write_text(json.dumps(rounded, indent=2, sort_keys=True) + "\n")
    print(f"wrote {relative(RUN_SECONDS)}: {sum(measured.values()):.0f} s in all")


if __name__ == "__main__":
    main()
