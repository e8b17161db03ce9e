"""Work that takes long says how far it is, on a terminal and in a log."""

import os
import pty
import re
import select
import signal
import subprocess
import sys

import pytest

from tools.processes import sphinx
from tools.project.paths import ROOT

# The work ends when its standard input does.
WORK = """
import sys
from tools.processes import progress
progress.FIRST, progress.EVERY, progress.MOVING, progress.AGAIN = 0.1, 0.3, 0.1, 0.1
count = iter(range(1000))
print("[work]", flush=True)
with progress.progress(lambda: f"{next(count)} of 1000 pages " + "and more " * 20):
    with progress.progress(lambda: "the inner one"):
        sys.stdin.readline()
    progress.note("a line of the log")
    sys.stdin.readline()
print("[work] done")
"""


@pytest.fixture
def work():
    """Start the work with an output; return its process."""
    processes = []

    def start(stdout, **environment):
        environment = {**os.environ, "TERM": "xterm", **environment}
        command = [sys.executable, "-u", "-c", WORK]
        options = {"cwd": ROOT, "env": environment, "stdin": subprocess.PIPE}
        process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.STDOUT, **options)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def let_go(process):
    process.stdin.write(b"\n")
    process.stdin.flush()


def read_until(pattern, descriptor, text=""):
    """Return what comes from a descriptor, until the pattern is in it."""
    while not re.search(pattern, text):
        assert select.select([descriptor], [], [], 30)[0], text
        text += os.read(descriptor, 1000).decode()
    return text


@pytest.fixture
def terminal():
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)


def test_a_log_gets_a_line_now_and_then(work):
    process = work(subprocess.PIPE)
    log = process.stdout.fileno()
    text = read_until(r"(    the inner one, \d s\n){2}", log)
    let_go(process)
    text = read_until(r"    [1-9] of 1000 pages .*, \d s\n", log, text)
    let_go(process)
    text = read_until("done\n", log, text)
    assert "a line of the log\n" in text
    assert "\r" not in text and "\x1b" not in text
    assert re.search(r"    0 of 1000 pages (and more ){20}, \d s\n", text), "whole lines"


def test_a_terminal_gets_one_line_that_moves_and_goes(work, terminal):
    ours, theirs = terminal
    process = work(theirs)
    os.close(theirs)
    text = read_until(r"(\r\x1b\[K    the inner one, \d s){2}", ours)
    let_go(process)
    text = read_until(r"\x1b\[K    2 of 1000 pages", ours, text)
    let_go(process)
    text = read_until("done\r\n", ours, text)
    assert text.startswith("[work]\r\n") and text.endswith("\r\x1b[K[work] done\r\n")
    assert text.count("\n") == 2, "all others are the same line"
    assert "a line of the log" not in text
    assert max(map(len, re.split(r"\r\x1b\[K|\r\n", text))) < 80


def test_an_interrupt_leaves_a_clean_line(work, terminal):
    ours, theirs = terminal
    process = work(theirs)
    os.close(theirs)
    text = read_until("the inner one", ours)
    process.send_signal(signal.SIGINT)
    text = read_until("KeyboardInterrupt\r\n", ours, text)
    assert "\r\x1b[KTraceback" in text, "which takes the place of the line"


def test_a_dumb_terminal_is_a_log(work, terminal):
    ours, theirs = terminal
    work(theirs, TERM="dumb")
    os.close(theirs)
    text = read_until(r"the inner one, \d s\r\n", ours)
    assert "\x1b" not in text


def test_pages_are_counted_over_all_languages(tmp_path, monkeypatch):
    files = "docs/index.md docs/part/a.rst docs/_templates/no.md docs/decisions/no.md docs/no.svg "
    files += "en.read/index.doctree en.read/part/a.doctree ko.read/index.doctree "
    files += "en/index.html en/_static/no.css en/search.html en/genindex.html"
    for name in files.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(sphinx, "progress", lambda describe: describe())
    folders = [(tmp_path / f"{x}.read", tmp_path / x) for x in ("en", "ko")]
    old = tmp_path / "ko" / "of-the-last-build.html"
    old.parent.mkdir()
    old.touch()
    os.utime(old, (1, 1))
    monkeypatch.setattr(sphinx.time, "time", lambda: 2)
    assert sphinx.counting_pages("rendering en, ko", tmp_path / "docs", *folders) == (
        "rendering en, ko: 3 of 4 pages read, 3 written"
    )
