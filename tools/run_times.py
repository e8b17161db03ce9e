"""Measure how long each sample takes a reader, for the pages to show.

usage: python -m tools.run_times

Runs the samples one after the other, with a new interpreter for each rank, and writes
the times, rounded up to five seconds, into gallery/run_seconds.json. That is committed:
two builds of one commit show the same times.
"""

import json
import math
import sys

from .compile import compile_extension
from .errors import BuildError
from .execute import run_sample
from .paths import BUILD, RUN_SECONDS, relative
from .samples import samples

STEP = 5  # seconds


def main():
    compile_extension()
    rounded = {}
    for script in samples():
        _, seconds = run_sample(script, BUILD / "run_times" / script.stem)
        rounded[script.stem] = math.ceil(seconds / STEP) * STEP
        print(f"{seconds:6.1f} s  {relative(script)}", flush=True)
    RUN_SECONDS.write_text(json.dumps(rounded, indent=2, sort_keys=True) + "\n")
    print(f"wrote {relative(RUN_SECONDS)}")


if __name__ == "__main__":
    try:
        main()
    except BuildError as error:
        sys.exit(f"error: {error}")
