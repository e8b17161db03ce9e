"""Run algorithms for collectives on thousands of ranks, in virtual time.

usage: python -m c10d_frame.simulate [HEADER.hpp ...] [NAME=VALUE ...]

Each header has algorithms of your own, which frame/algorithms/algorithms.hpp shows how to add.
The options are `operation`, `algorithm`, `ranks` and `bytes` (one or several, separated by
commas), `hosts`, `latency` and `overhead` (of a send, and of a receive) in microseconds, `rate` in
Gbit/s, and `check=yes`, which runs the algorithms with real bytes. Their names may be in capitals,
as in `make simulate`. It needs a C++20 compiler, and not PyTorch.
"""

import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from . import get_include

SOURCE = Path(__file__).resolve().parent / "simulator" / "simulate.cpp"


def simulate(*options: str, headers: tuple[str | Path, ...] = ()) -> str:
    """Return what the simulator prints: a table, or the number of runs that were right.

    ``options`` are words such as "ranks=64,512"; ``headers`` are the paths of headers with
    algorithms. Raises ``RuntimeError`` with the reason if the simulator cannot be compiled, if an
    option is wrong, and if an algorithm fails: it deadlocks, or its result is wrong.
    """
    program = _compiled([str(Path(header).resolve()) for header in headers])
    return _output([program, *options])


def _compiled(headers):
    """Return the path of the program, which is compiled only if no earlier one is the same."""
    command = [*shlex.split(os.environ.get("CXX", "c++")), "-std=c++20", "-O2"]
    command += [f"-I{get_include()}", *(f"-include{header}" for header in headers)]
    text = _output([*command, "-E", "-P", SOURCE])
    version = _output([command[0], "--version"])
    digest = hashlib.sha256(f"{version}{text}".encode()).hexdigest()[:20]
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    program = Path(cache, "c10d_frame", f"simulate-{digest}")
    if not program.is_file():
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program.parent) as folder:
            unfinished = Path(folder, "simulate")
            _output([*command, SOURCE, "-o", unfinished])
            unfinished.replace(program)
    return program


def _output(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise RuntimeError(
            f"cannot run {command[0]}; install a C++20 compiler, or name one in CXX"
        ) from None
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"{command[0]} ended with {done.returncode}")
    return done.stdout


def main(words: list[str]) -> None:
    headers = tuple(word for word in words if "=" not in word)
    options = [word.partition("=") for word in words if "=" in word]
    try:
        text = simulate(*(f"{name.lower()}={value}" for name, _, value in options), headers=headers)
    except RuntimeError as error:
        sys.exit(str(error))
    print(text, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
