"""Programs from the fork server behave like those of an interpreter of their own."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tools.processes import fork_server
from tools.project.errors import BuildError
from tools.project.paths import ROOT

# Only the server loads it; a program that has it was forked from there.
LOADED = "colorsys"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    folder = tmp_path_factory.mktemp("server")
    with fork_server.running(folder, modules=[LOADED], env=environment) as address:
        yield address


@pytest.fixture
def start(server, tmp_path):
    """Start a program; return the process, and a function that reads its streams."""
    processes = []

    def started(text, *options, env=None):
        program = tmp_path / f"program_{len(processes)}.py"
        program.write_text(text)
        arguments = options if "-m" in options else [*options, str(program), "argument"]
        paths = [program.with_suffix(suffix) for suffix in (".out", ".err")]
        environment = {**os.environ, fork_server.ADDRESS: server, **(env or {})}
        with open(paths[0], "wb") as out, open(paths[1], "wb") as err:
            process = fork_server.popen(
                [sys.executable, *arguments],
                stdout=out,
                stderr=err,
                env=environment,
                address=server,
            )
        processes.append(process)
        return process, lambda: tuple(path.read_text() for path in paths)

    yield started
    for process in processes:
        process.kill()


def wait_until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def gone(process):
    try:
        return psutil.Process(process).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_program_is_on_its_own(start):
    process, read = start(
        "import os, sys\n"
        f"print(sys.argv[1:], __name__, {LOADED!r} in sys.modules, os.environ['OWN'])\n"
        "print(os.getsid(0) == os.getpid(), sys.path[0] == os.path.dirname(__file__))\n"
        "print(sys.stdin.read() == '', 'SECRET' in os.environ)\n"
        "os.write(1, b'from below\\n')\n",
        env={"OWN": "value"},
    )
    assert process.wait(10) == 0
    out, err = read()
    assert sorted(out.splitlines()) == sorted(
        ["['argument'] __main__ True value", "True True", "True False", "from below"]
    )
    assert err == ""


def test_a_module_as_program(start):
    process, read = start("", "-m", "json.tool", "--help")
    assert process.wait(10) == 0
    assert "usage: " in read()[0]


def test_the_interpreter_goes_down_as_usual(start):
    process, read = start(
        "import atexit, sys, threading, time\n"
        "atexit.register(print, 'registered')\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\n"
        "class Held:\n    def __del__(self): print('freed')\n"
        "held = Held()\n"
        "sys.exit(3)\n"
    )
    assert process.wait(10) == 3
    assert read()[0].split() == ["thread", "registered", "freed"]


def test_an_exception(start):
    process, read = start("def broken():\n    1 / 0\n\nbroken()\n")
    assert process.wait(10) == 1
    error = read()[1]
    assert 'program_0.py", line 2, in broken\n' in error
    assert error.endswith("ZeroDivisionError: division by zero\n")
    assert "fork_server" not in error


def test_modules_in_a_folder_that_the_server_does_not_know(tmp_path):
    program, folder = tmp_path / "program.py", tmp_path / "modules"
    program.write_text("import young\n")
    of_server = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    with (
        fork_server.running(tmp_path, modules=["colorsys"], env=of_server) as address,
        open(tmp_path / "log", "wb") as log,
    ):
        folder.mkdir()
        (folder / "young.py").write_text("")
        process = fork_server.popen(
            [sys.executable, str(program)],
            stdout=log,
            stderr=log,
            env=environment,
            address=address,
        )
        assert process.wait(10) == 0, (tmp_path / "log").read_text()


def test_options(start):
    warn = "import warnings\nwarnings.warn('careful')\n"
    process, read = start(warn, "-W", "error", "-X", "faulthandler")
    assert process.wait(10) == 1 and "UserWarning: careful" in read()[1]
    process, read = start("import os; os.abort()", "-X", "faulthandler")
    assert process.wait(10) == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in read()[1]
    process, read = start("import os; os.abort()")
    assert process.wait(10) == -signal.SIGABRT
    assert "Fatal Python error" not in read()[1]


def test_time_limit(start):
    process, _ = start("import time; time.sleep(60)")
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == -signal.SIGTERM
    assert gone(process.pid)


def test_its_number_is_its_own_until_it_is_told_how_it_ended(start):
    """As with Popen: who has not been told may still send a signal, as torchrun does."""
    for _ in range(20):
        process, _ = start("")
        os.killpg(process.pid, 0)  # At once, it has a session.
    wait_until(lambda: gone(process.pid))
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGTERM)
    process.send_signal(signal.SIGTERM)  # Which asks first, and is told.
    assert process.wait(10) == 0
    wait_until(lambda: not psutil.pid_exists(process.pid))


STARTS_OTHERS = """\
import os, subprocess, sys, time
from tools.processes import fork_server
inner = [sys.executable, {sleeper!r}]
one = subprocess.Popen(inner, start_new_session=True)
two = fork_server.popen(inner, stdout=sys.stdout, stderr=sys.stderr, env=os.environ.copy())
print(one.pid, two.pid, flush=True)
{then}
"""


@pytest.mark.parametrize("how", ["kill", "ends", "crashes"])
def test_nothing_outlives_a_program(start, tmp_path, how):
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text("import time\ntime.sleep(60)\n")
    then = {"kill": "time.sleep(60)", "ends": "", "crashes": "os.abort()"}[how]
    process, read = start(STARTS_OTHERS.format(sleeper=str(sleeper), then=then))
    wait_until(lambda: len(read()[0].split()) == 2)
    one, two = map(int, read()[0].split())
    try:
        if how == "kill":
            process.kill()
            wait_until(lambda: gone(one))
        else:
            process.wait(10)
        wait_until(lambda: gone(two))
    finally:
        if not gone(one):  # Of another session: the build's marker finds it.
            os.kill(one, signal.SIGKILL)


def test_nothing_outlives_the_server(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import time; time.sleep(60)")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with fork_server.running(tmp_path, modules=[], env=environment) as address:
        with open(tmp_path / "log", "wb") as log:
            process = fork_server.popen(
                [sys.executable, str(program)],
                stdout=log,
                stderr=log,
                env=environment,
                address=address,
            )
    wait_until(lambda: gone(process.pid))
    assert process.wait(10) == -signal.SIGKILL


KILLED_AT_ONCE = """\
import os, sys
from tools.processes import fork_server
with fork_server.running(sys.argv[1], modules=[], env=os.environ):
    os.kill(os.getpid(), 9)
"""


def test_the_server_does_not_outlive_who_is_killed_at_once(tmp_path):
    def is_of_this_test(process):
        try:
            return process.environ().get("THIS_TEST") == str(tmp_path)
        except psutil.Error:  # It has ended, or is somebody else's.
            return False

    command = [sys.executable, "-c", KILLED_AT_ONCE, str(tmp_path)]
    environment = {**os.environ, "THIS_TEST": str(tmp_path)}
    subprocess.run(command, cwd=ROOT, env=environment, timeout=10)
    wait_until(lambda: not any(map(is_of_this_test, psutil.process_iter())))


def test_a_module_that_does_not_load(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    modules = ["no_such_module"]
    with fork_server.running(tmp_path, modules=modules, env=environment) as address:
        with (
            open(tmp_path / "log", "wb") as log,
            pytest.raises(BuildError, match="could not start"),
        ):
            command = [sys.executable, "-c", "pass"]
            fork_server.popen(command, stdout=log, stderr=log, env={}, address=address)


def test_a_folder_with_a_long_name(tmp_path):
    with pytest.raises(BuildError, match="set TMPDIR to a shorter path"):
        with fork_server.running(tmp_path / ("x" * 100), modules=[], env={}):
            pass


def test_a_program_waits_until_the_modules_are_loaded(tmp_path):
    (tmp_path / "slow_module.py").write_text("import time; time.sleep(1); done = True")
    (tmp_path / "program.py").write_text("import sys; print(sys.modules['slow_module'].done)")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    started = time.monotonic()
    with fork_server.running(tmp_path, modules=["slow_module"], env=environment) as address:
        with open(tmp_path / "log", "wb") as log:
            process = fork_server.popen(
                [sys.executable, str(tmp_path / "program.py")],
                stdout=log,
                stderr=log,
                env=environment,
                address=address,
            )
        assert process.wait(10) == 0
    assert (tmp_path / "log").read_text() == "True\n"
    assert time.monotonic() - started >= 1
