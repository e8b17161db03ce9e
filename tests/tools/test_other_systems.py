"""Builds on a system without the calls of Linux, as on macOS: plain processes do the same.

This is Linux with these calls taken away, not macOS.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from tools.processes import fork_server, one_build
from tools.publish import stage as publish

# Python imports it at its start, in the build and in all Python programs that the build starts.
WITHOUT_LINUX = """\
import ctypes, os, sys
import psutil

del os.waitid, os.sched_getaffinity
os.__all__ = [name for name in os.__all__ if hasattr(os, name)]


class Library(ctypes.CDLL):
    def __getattr__(self, name):
        if name in {"prctl", "renameat2"}:
            raise AttributeError(name)
        return super().__getattr__(name)


def environ(process, known=psutil.Process.environ):
    "macOS shows none of its own programs."
    return known(process) if process.exe() == os.path.realpath(sys.executable) else {}


ctypes.CDLL, psutil.Process.environ = Library, environ
"""
BUILD = "tools.html"
PUBLISHED = "_build/html/en/tutorial/sample.html"
PAGE = "# Title\n\nThe first text.\n\n```{toctree}\ntutorial/sample\n```\n"
WORKER = "import os\nprint('of', os.environ['WORLD_SIZE'], hasattr(os, 'waitid'))\n"
SAMPLE = "from launcher import launch\nlaunch('workers/worker.py', ranks=2)\n"
SHOWN = "    [rank 0] of 2 False\n    [rank 1] of 2 False\n"
# A program of the system in a session of its own: neither its environment nor its session says
# whose it is.
HANGING = "import pathlib, subprocess, time\n"
HANGING += "one = subprocess.Popen(['sleep', '90'], start_new_session=True)\n"
HANGING += "pathlib.Path(__file__ + os.environ['RANK']).write_text(f'{os.getpid()} {one.pid}')\n"
HANGING += "time.sleep(90)\n"
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def built(lasting_project):
    """A project whose site was built without the calls of Linux."""
    project = lasting_project
    project.write("sitecustomize.py", WITHOUT_LINUX)
    project.write("docs/index.md", PAGE)
    project.write("gallery/tutorial/workers/worker.py", WORKER)
    project.sample(SAMPLE)
    text = project.read("languages.toml")
    for name in ("ko", "zh_CN"):
        line = f'gettext = "{name}"\n'
        text = text.replace(line, f"{line}complete = false\n")
    project.write("languages.toml", text)
    for command in ("tools.execute", "tools.i18n_update", BUILD):
        status, output = project.run(command, **environment(project))
        assert status == 0, output
    project.page = project.read(PUBLISHED)
    return project


def environment(project):
    return {"PYTHONPATH": str(project.root)}


def test_the_site_is_built(built):
    assert SHOWN in built.read("docs/tutorial/sample.rst")
    for language in ("en", "ko", "zh-cn"):
        page = built.read(f"_build/html/{language}/tutorial/sample.html")
        assert "[rank 1] of 2 False" in page


def test_a_build_that_fails_leaves_the_last_site(built):
    built.write("gallery/tutorial/workers/worker.py", WORKER + "raise ValueError('no luck')\n")
    output = built.fail(BUILD, **environment(built))
    assert "rank 0 of 2: ended with exit status 1" in output and "was not changed" in output
    assert built.read(PUBLISHED) == built.page


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_build_that_is_killed_leaves_no_process(built, how):
    worker = built.write("gallery/tutorial/workers/worker.py", WORKER + HANGING)
    notes = [worker.with_name(f"worker.py{rank}") for rank in (0, 1)]
    with open(built.root / "log", "w") as log:
        build = subprocess.Popen(
            [sys.executable, "-m", BUILD],
            cwd=built.root,
            env={**os.environ, **environment(built)},
            stdout=log,
            stderr=log,
        )
    deadline = time.monotonic() + 90
    while not all(note.exists() and " " in note.read_text() for note in notes):
        assert time.monotonic() < deadline and build.poll() is None, built.read("log")
        time.sleep(0.1)
    left = [psutil.Process(int(x)) for note in notes for x in note.read_text().split()]
    left += psutil.Process(build.pid).children(recursive=True)
    for note in notes:
        note.unlink()
    build.send_signal(how)
    assert build.wait(30) != 0
    assert built.read(PUBLISHED) == built.page
    if how is signal.SIGKILL:  # Nobody can clean up after that but the next build.
        assert all(map(is_running, left))
        built.write("gallery/tutorial/workers/worker.py", WORKER)
        status, output = built.run(BUILD, **environment(built))
        assert status == 0, output
    else:
        output = built.read("log")
        assert "error: interrupted" in output and "was not changed" in output
    assert [process for process in left if is_running(process)] == []


def is_running(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_there_is_no_fork_server(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "waitid")
    with fork_server.running(tmp_path, modules=[], env={}) as address:
        assert address is None


def test_the_swap_of_macos(tmp_path, monkeypatch):
    def renamex_np(one, other, flags):
        calls.append((one, other, flags))
        return 0

    calls = []
    system = SimpleNamespace(renamex_np=renamex_np)
    monkeypatch.setattr(publish.ctypes, "CDLL", lambda name: system)
    assert publish._exchange(tmp_path / "a", tmp_path / "b")
    assert calls == [(os.fsencode(tmp_path / "a"), os.fsencode(tmp_path / "b"), 2)]


def test_a_short_path_for_sockets(monkeypatch):
    """The folder that macOS has for temporary files has a name of 49 bytes."""
    assert one_build._temporary("0" * 32).parent == Path(tempfile.gettempdir())
    monkeypatch.setattr(sys, "platform", "darwin")
    assert one_build._temporary("0" * 32).parent == Path("/tmp")
