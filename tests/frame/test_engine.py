"""The engine of the frame, with a transport that does what a test wants."""

import ctypes
import faulthandler
import os
import signal
import subprocess
import sysconfig
from pathlib import Path

import pytest
from ranks import Killed, run
from torch.utils.cpp_extension import include_paths, library_paths

from tools.project.paths import HEADERS

FLAGS = ["-std=c++20", "-O0", "-fPIC", "-shared", "-Wall", "-Wextra"]


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """Compile engine.cpp, and return a function that runs one of its programs in a fork."""
    library = tmp_path_factory.mktemp("engine") / "engine.so"
    command = [os.environ.get("CXX", "c++"), *FLAGS, Path(__file__).with_name("engine.cpp")]
    command += [f"-I{HEADERS}", f"-isystem{sysconfig.get_path('include')}"]
    command += [f"-isystem{path}" for path in include_paths()]
    for path in library_paths():
        command += [f"-L{path}", f"-Wl,-rpath,{path}"]
    subprocess.run([*command, "-ltorch_cpu", "-lc10", "-o", library], check=True)

    def of_program(_, name):
        faulthandler.disable()  # or it would report the process that is to abort
        run_program = ctypes.CDLL(library).run_program
        run_program.restype = ctypes.c_char_p
        return run_program(name.encode()).decode()

    return lambda name: run(of_program, 1, name, init=False, may_be_killed=True)[0]


@pytest.mark.parametrize(
    "name",
    [
        "a deadline in a callback",
        "a turn that is lost",
        "a turn that is used",
        "a result that cannot be written",
        "a work that three threads ask",
        "a wait that has ended once",
        "an operation that comes while another thread waits",
        "the keys of a failure",
    ],
)
def test_program(answer, name):
    assert answer(name) == ""


@pytest.mark.timeout(300)
def test_a_callback_that_throws_ends_the_process(answer, capfd):
    killed = answer("a callback that throws")
    assert isinstance(killed, Killed) and killed.args == (-signal.SIGABRT,)
    assert "out of a callback" in capfd.readouterr().err
