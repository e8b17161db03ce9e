"""Run all functions check_… of a program in a process of its own: `python checks.py PROGRAM`.

The program may import what must not be loaded in the process of the tests. Prints for each
function what it raises, or an empty text.
"""

import json
import re
import runpy
import subprocess
import sys
import traceback
from pathlib import Path


def names_in(program):
    """Return the names of the checks of a program, in their order."""
    return re.findall(r"^def (check_\w+)", program.read_text(), re.M)


def results_of(program):
    """Run a program, and return what each of its checks raises, by its name."""
    command = [sys.executable, __file__, program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main(program):
    checks = runpy.run_path(program)
    results = {}
    for name in names_in(Path(program)):
        try:
            checks[name]()
            results[name] = ""
        except Exception:
            results[name] = traceback.format_exc()
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
