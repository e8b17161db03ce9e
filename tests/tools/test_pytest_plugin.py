"""The suite of conformance/ in the pytest of an author, who installs its wheel."""

import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from xml.etree import ElementTree

import psutil
import pytest
from c10d_conformance import registry
from c10d_conformance.hosts import why_not
from c10d_conformance.options import Mistake
from c10d_conformance.server import Server
from c10d_conformance.settings import Settings

from tools.pages.packages import wheel
from tools.project.paths import SUITE

# It has what no rank may inherit: a group, threads, and a device that is in use.
CONFTEST = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.mm(torch.ones(256, 256), torch.ones(256, 256))
dist.all_reduce(torch.ones(4))
"""
MINE = """
import sys

import pytest

@pytest.mark.c10d
def test_is_mine():
    assert "c10d_conformance.plugin" in sys.modules

def test_needs_no_torch():
    assert not {"torch", "multiprocessing.pool", "c10d_conformance.server"} & set(sys.modules)
"""
RIGHT, FAILING = "lifecycle.registered[2]", "works.completed_after_wait[2]"  # of gloo
SELECTED = "is_mine or registered or completed_after_wait"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return a folder with the suite as pip installs it, with its entry points."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(io.BytesIO(wheel(SUITE)[1])) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture
def author(tmp_path, installed):
    """Return a function that runs pytest in the folder of an author's tests."""
    (tmp_path / "test_mine.py").write_text(MINE)
    environment = {key: x for key, x in os.environ.items() if not key.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(installed)

    def run(*arguments):
        command = [sys.executable, "-m", "pytest", "--strict-markers", "-W", "error", *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_without_the_option_nothing_is_imported(author):
    status, output = author("-q")
    assert status == 0 and output.startswith("..")
    status, output = author("--markers")
    assert "@pytest.mark.c10d_timeout: checks of Timeouts" in output


def test_checks_run_beside_tests_of_a_process_with_threads_and_a_group(author, tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    quick = ["--c10d-backend=gloo", "--c10d-quick", "-p", "no:xdist"]
    status, output = author(*quick, "-v", "-k", SELECTED, "--junitxml=r.xml")
    assert status == 1 and "c10d: gloo on cpu, 2 ranks" in output
    lines = re.findall(r"^(\S+) (PASSED|FAILED)", output, re.M)
    assert lines == [
        ("test_mine.py::test_is_mine", "PASSED"),
        (f"c10d::{RIGHT}", "PASSED"),
        (f"c10d::{FAILING}", "FAILED"),
    ]
    assert "WRONG: reduce_scatter, is_completed after wait" in output
    cases = ElementTree.parse(tmp_path / "r.xml").getroot().findall(".//testcase")
    assert (cases[2].get("classname"), cases[2].get("name")) == ("c10d", FAILING)
    properties = {x.get("name"): x.get("value") for x in cases[2].findall(".//property")}
    assert properties["capability"] == "async" and int(properties["verdict wrong"]) == 2


@pytest.mark.slow
def test_checks_are_chosen_as_tests_are(author, tmp_path):
    quick = ["--c10d-backend=gloo", "--c10d-quick", "-p", "no:xdist"]
    # An id can be copied, and named tests come without checks.
    status, output = author(*quick, "-q", "-x", f"c10d::{FAILING}", "c10d::failure.abort[2]")
    assert status == 1 and "\n1 failed in" in output
    status, output = author(*quick, "-q", "test_mine.py::test_is_mine")
    assert status == 0 and "1 passed in" in output
    status, output = author(*quick, "--lf", "--collect-only", "-q")
    assert output.splitlines()[0] == f"c10d::{FAILING}" and "1/" in output
    status, output = author(*quick, "--collect-only", "-q", "-m", "c10d_timeout or not c10d")
    ids = [x for x in output.splitlines() if "::" in x]
    assert len(ids) > 2 and ids.pop(0).startswith("test_mine.py")
    assert all(re.fullmatch(r"c10d::failure\.\w+\[2\]", x) for x in ids)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--c10d-backend=nothing"], "no backend is called 'nothing'"),
        (["--c10d-backend=gloo", "--c10d-ranks=two"], "--c10d-ranks two: give numbers"),
    ],
)
def test_a_wrong_option_is_one_message(author, arguments, text):
    status, output = author(*arguments)
    assert status == pytest.ExitCode.USAGE_ERROR
    lines = [line for line in output.splitlines() if line]
    assert len(lines) == 1 and lines[0].startswith("ERROR: ") and text in lines[0]


@pytest.mark.slow
def test_processes_of_xdist_share_the_checks(author, tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    options = ["--c10d-backend=gloo", "--c10d-quick", "-n", "2"]
    status, output = author(*options, "-k", SELECTED)
    assert status == 1 and "1 failed, 2 passed" in output
    assert f"FAILED c10d::{FAILING}" in output
    status, output = author(*options, f"c10d::{RIGHT}")
    assert status == 0 and "1 passed" in output
    status, output = author("--c10d-backend=nothing", "-n", "2")
    assert status == pytest.ExitCode.USAGE_ERROR and output.count("\n") <= 2


@pytest.mark.slow
@pytest.mark.skipif(bool(why_not()), reason="hosts cannot be simulated here")
def test_a_process_with_threads_can_have_hosts(author, tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    options = ["--c10d-backend=gloo", "--c10d-quick", "--c10d-hosts=2"]
    status, output = author(*options, "-k", "is_mine or broadcast_types")
    assert status == 0 and "2 passed" in output


STUCK = """
import os
import time
from pathlib import Path

if "RANK" in os.environ:
    Path(__file__).with_suffix(f".{os.environ['RANK']}").write_text(str(os.getpid()))
    time.sleep(3600)
"""


def test_an_interrupted_check_ends_with_its_ranks(tmp_path, monkeypatch):
    (tmp_path / "stuck.py").write_text(STUCK)
    monkeypatch.syspath_prepend(tmp_path)
    server = Server(Settings("gloo", module="stuck", limit=600))
    check = next(check for check in registry.load() if check.id == "lifecycle.registered")
    files = [tmp_path / f"stuck.{rank}" for rank in range(2)]

    def interrupt():
        while not all(file.exists() and file.read_text() for file in files):
            time.sleep(0.01)
        # raise_signal() would not end what the main thread waits for.
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    server.start()
    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            server.timed(check, 2)
        assert not any(psutil.pid_exists(int(file.read_text())) for file in files)
        thread.join()
    finally:
        server.close()


def test_a_server_that_ends_is_one_message_and_another_one_starts():
    server = Server(Settings("gloo"))
    check = next(check for check in registry.load() if check.id == "lifecycle.registered")
    try:
        server.start()
        server._process.kill()
        with pytest.raises(Mistake, match="the process that starts the ranks has ended"):
            server.timed(check, 2)
        assert [outcome.verdict for outcome in server.timed(check, 2)[0]] == ["right"]
    finally:
        server.close()
