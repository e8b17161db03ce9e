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

from .compile import headers
from .compile.stage import compile_extension, compile_seconds
from .execute.samples import samples
from .execute.stage import run_sample
from .pages.provenance import COMMANDS_TEST, commands_seconds
from .processes.run import forget_steering
from .project.configuration import read
from .project.errors import ending_the_program
from .project.paths import BUILD, INSTALLED_EXTENSION, RUN_SECONDS, relative

STEP = 5  # seconds
OTHER_RUNS = {"compile": compile_seconds, COMMANDS_TEST: commands_seconds}


def main():
    forget_steering()
    for made in (INSTALLED_EXTENSION, headers.FOLDER):
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
