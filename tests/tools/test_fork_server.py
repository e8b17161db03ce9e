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

# The server loads these, the second of them slowly; a program that has them was forked there.
LOADED, SLOW = "colorsys", "slow_module"
SLEEPS = "import time; time.sleep(60)"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    (folder / f"{SLOW}.py").write_text("import time; time.sleep(1); done = True")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    with fork_server.running(folder, modules=[LOADED, SLOW], env=environment) as address:
        yield address


@pytest.fixture
def start(server, tmp_path):
    """Start a program; return the process, and a function that reads its streams."""
    processes = []

    def started(text, *, address=server, env=None):
        program = tmp_path / f"program_{len(processes)}.py"
        program.write_text(text)
        paths = [program.with_suffix(suffix) for suffix in (".out", ".err")]
        environment = {**os.environ, fork_server.ADDRESS: address, **(env or {})}
        with open(paths[0], "wb") as out, open(paths[1], "wb") as err:
            process = fork_server.popen(
                [sys.executable, str(program), "argument"],
                stdout=out,
                stderr=err,
                env=environment,
                address=address,
            )
        processes.append(process)
        return process, lambda: tuple(path.read_text() for path in paths)

    yield started
    for process in processes:
        process.kill()


def wait_until(condition):
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def has_ended(process):
    try:
        return psutil.Process(process).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_program_is_on_its_own(start, tmp_path):
    (tmp_path / "modules").mkdir()  # The server does not know the folder.
    (tmp_path / "modules/young.py").write_text("")
    process, read = start(
        f"import os, sys, young\n"
        f"print(sys.argv[1:], __name__, {LOADED!r} in sys.modules, os.environ['OWN'])\n"
        f"print(sys.modules[{SLOW!r}].done)\n"
        "print(os.getsid(0) == os.getpid(), sys.path[0] == os.path.dirname(__file__))\n"
        "print(sys.stdin.read() == '', flush=True)\n"
        "os.write(1, b'from below\\n')\n",
        env={"OWN": "value", "PYTHONPATH": str(tmp_path / "modules")},
    )
    assert process.wait(10) == 0, read()
    lines = ["['argument'] __main__ True value", "True", "True True", "True", "from below"]
    assert read() == ("\n".join([*lines, ""]), "")


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


def test_time_limit(start):
    process, _ = start(SLEEPS)
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == -signal.SIGTERM
    wait_until(lambda: not psutil.pid_exists(process.pid))


def test_its_number_is_its_own_until_its_status_is_read(start):
    """As with Popen: torchrun, for example, may signal a process whose status it has not read."""
    process, _ = start("")
    os.killpg(process.pid, 0)  # At once, it has a session.
    wait_until(lambda: has_ended(process.pid))
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGTERM)
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
    sleeper.write_text(SLEEPS)
    then = {"kill": SLEEPS, "ends": "", "crashes": "os.abort()"}[how]
    process, read = start(STARTS_OTHERS.format(sleeper=str(sleeper), then=then))
    wait_until(lambda: len(read()[0].split()) == 2)
    one, two = map(int, read()[0].split())
    try:
        if how == "kill":
            process.kill()
            wait_until(lambda: has_ended(one))
        else:
            process.wait(10)
        wait_until(lambda: has_ended(two))
    finally:
        if not has_ended(one):  # Of another session: the build's marker finds it.
            os.kill(one, signal.SIGKILL)


OF_TOOLS = {**os.environ, "PYTHONPATH": str(ROOT)}


def test_nothing_outlives_the_server(start, tmp_path):
    with fork_server.running(tmp_path, modules=[], env=OF_TOOLS) as address:
        process, _ = start(SLEEPS, address=address)
    wait_until(lambda: has_ended(process.pid))
    assert process.wait(10) == -signal.SIGKILL


KILLED_AT_ONCE = """\
import os, sys
from tools.processes import fork_server
with fork_server.running(sys.argv[1], modules=[], env=os.environ):
    os.kill(os.getpid(), 9)
"""


def test_the_server_does_not_outlive_a_build_that_is_killed_at_once(tmp_path):
    def is_of_this_test(process):
        try:
            return process.environ().get("THIS_TEST") == str(tmp_path)
        except psutil.Error:  # It has ended, or belongs to another user.
            return False

    command = [sys.executable, "-c", KILLED_AT_ONCE, str(tmp_path)]
    environment = {**os.environ, "THIS_TEST": str(tmp_path)}
    subprocess.run(command, cwd=ROOT, env=environment, timeout=600)
    wait_until(lambda: not any(map(is_of_this_test, psutil.process_iter())))


def test_a_module_that_does_not_load(start, tmp_path):
    modules = ["no_such_module"]
    with fork_server.running(tmp_path, modules=modules, env=OF_TOOLS) as address:
        with pytest.raises(BuildError, match="could not start"):
            start("", address=address)


def test_a_folder_with_a_long_name(tmp_path):
    with pytest.raises(BuildError, match="set TMPDIR to a shorter path"):
        with fork_server.running(tmp_path / ("x" * 100), modules=[], env={}):
            pass
