"""The engine of the frame, with a transport that does what a test wants."""

import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from torch.utils.cpp_extension import include_paths, library_paths

from tools.project.paths import FRAME

FLAGS = ["-std=c++20", "-O0", "-fPIC", "-shared", "-Wall", "-Wextra"]
LOAD = """
import ctypes, sys, torch
run = ctypes.CDLL(sys.argv[1]).run_program
run.restype = ctypes.c_char_p
print(run(sys.argv[2].encode()).decode(), end="")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Compile engine.cpp, and return a function that runs one of its programs in a process."""
    library = tmp_path_factory.mktemp("engine") / "engine.so"
    command = [os.environ.get("CXX", "c++"), *FLAGS, Path(__file__).with_name("engine.cpp")]
    command += [f"-I{FRAME.parent}", f"-isystem{sysconfig.get_path('include')}"]
    command += [f"-isystem{path}" for path in include_paths()]
    for path in library_paths():
        command += [f"-L{path}", f"-Wl,-rpath,{path}"]
    subprocess.run([*command, "-ltorch_cpu", "-lc10", "-o", library], check=True)

    def run_program(name):
        command = [sys.executable, "-c", LOAD, library, name]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    return run_program


@pytest.mark.timeout(300)  # with the compilation, of 25 s on a quiet machine
@pytest.mark.parametrize(
    "name",
    [
        "a deadline in a callback",
        "a turn that is lost",
        "a turn that is used",
        "a result that cannot be written",
    ],
)
def test_program(run, name):
    done = run(name)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.timeout(300)
def test_a_callback_that_throws_ends_the_process(run):
    done = run("a callback that throws")
    assert done.returncode == -signal.SIGABRT and "out of a callback" in done.stderr
