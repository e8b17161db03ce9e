"""Measure how long each sample takes a reader, for the pages to show.

usage: python -m tools.run_times

Runs the samples one after the other, with a new interpreter for each rank, and writes
the times, rounded up to five seconds, into gallery/run_seconds.json. That is committed:
two builds of one commit show the same times. The extension is compiled from nothing. The
time of the commands that readers are told to type is that of the last test of them.
"""

import json
import math
import shutil

from . import precompile
from .compile import compile_extension, compile_seconds
from .configuration import read
from .errors import ending_the_program
from .execute import run_sample
from .paths import BUILD, INSTALLED_EXTENSION, RUN_SECONDS, relative
from .processes import forget_steering
from .provenance import COMMANDS_TEST, commands_seconds
from .samples import samples

STEP = 5  # seconds
OTHER_RUNS = {"compile": compile_seconds, COMMANDS_TEST: commands_seconds}


def main():
    forget_steering()
    for made in (INSTALLED_EXTENSION, precompile.FOLDER):
        shutil.rmtree(made, ignore_errors=True)
    compile_extension()
    measured = {name: seconds() for name, seconds in OTHER_RUNS.items()}
    for script in samples():
        _, measured[script.stem] = run_sample(script, BUILD / "run_times" / script.stem)
        print(f"{measured[script.stem]:6.1f} s  {relative(script)}", flush=True)
    known = read(RUN_SECONDS, dict)
    rounded = {
        name: known.get(name) if seconds is None else math.ceil(seconds / STEP) * STEP
        for name, seconds in measured.items()
    }
    RUN_SECONDS.write_text(json.dumps(rounded, indent=2, sort_keys=True) + "\n")
    print(f"wrote {relative(RUN_SECONDS)}")


if __name__ == "__main__":
    with ending_the_program():
        main()
