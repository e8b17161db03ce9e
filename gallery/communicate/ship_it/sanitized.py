"""Compile C++ for a sanitizer and run it, for the programs beside this module."""

import atexit
import ctypes
import os
import re
import subprocess
import tempfile
from pathlib import Path

WORKERS = Path(__file__).resolve().parent
TEMPORARY = tempfile.TemporaryDirectory()
FOLDER = Path(TEMPORARY.name)
atexit.register(TEMPORARY.cleanup)

# Nothing is preloaded into the compiler and the programs, unless a program says so.
ENVIRONMENT = {"PATH": os.environ["PATH"]}
# If this process runs with a sanitizer, CXX may add flags for that one, which exclude others.
COMPILER = "c++" if "LD_PRELOAD" in os.environ else os.environ.get("CXX", "c++")

# Some kernels randomize addresses more than the thread sanitizer of older compilers expects.
# The processes that this one starts inherit the setting. A container may forbid it.
ctypes.CDLL(None).personality(0x0040000)  # ADDR_NO_RANDOMIZE

# What is the same in every run: no addresses, no stacks, no numbers of processes.
LINES = re.compile(
    r"WARNING: (?P<warning>.*) \(pid=|"
    r"SUMMARY: (?P<summary>AddressSanitizer: \S+).*?(?P<reported>\w+\.cpp:\d+)|"
    r"^ +(?P<access>(?:Read|Write|Previous \w+) of size \d+) at \S+ (?P<thread>by .*):\n"
    r" +#0 .*?(?P<accessed>\w+\.cpp:\d+)|"
    r"(?P<overflow>runtime error: .*)|"
    r"(?P<preload>ASan runtime .*?);|"
    r"^(?P<printed>\d+)$",
    re.M,
)


# [compile]
def compile_for(sanitizers, source, target, *options):
    """Compile a file of this folder for the sanitizers."""
    flags = [f"-fsanitize={sanitizers}", "-std=c++20", "-O1", "-g", *options]
    command = [COMPILER, *flags, WORKERS / source, "-o", FOLDER / target]
    subprocess.run(command, env=ENVIRONMENT, check=True)


# [/compile]
def runtime(name):
    """Return the path of a library of the compiler."""
    command = [COMPILER, f"-print-file-name={name}"]
    return subprocess.check_output(command, env=ENVIRONMENT, text=True).strip()


def run(title, *command, **variables):
    """Run a program with these variables, and print its output, and reports in short."""
    done = subprocess.run(
        command,
        cwd=FOLDER,
        env=ENVIRONMENT | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = [_line(match.groupdict()) for match in LINES.finditer(done.stdout)]
    assert lines, done.stdout
    print(title, *(f"    {line}" for line in lines), sep="\n")


def _line(found):
    """Return a line for one match, with the code of a place instead of its number."""
    if found["access"]:
        return f"{found['access']} {found['thread']}: {_code(found['accessed'])}"
    if found["summary"]:
        return f"{found['summary']}: {_code(found['reported'])}"
    [text] = filter(None, found.values())
    return text


def _code(place):
    name, _, number = place.partition(":")
    return (WORKERS / name).read_text().splitlines()[int(number) - 1].strip()
