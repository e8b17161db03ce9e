"""The site is replaced whole, or not at all."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tools.publish import swap as publish


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.setattr(publish, "BUILD", tmp_path)
    monkeypatch.setattr(publish, "RENDERED", tmp_path / "render")
    monkeypatch.setattr(publish, "SITE", tmp_path / "html")
    (tmp_path / "render").mkdir()
    (tmp_path / "render/index.html").write_text("new")
    return tmp_path


@pytest.mark.parametrize("swaps", [True, False])
def test_the_next_site_takes_the_place_of_the_last(build, monkeypatch, swaps):
    """Also on a file system that cannot swap two folders; this one can."""
    exchange = publish._exchange
    monkeypatch.setattr(publish, "_exchange", lambda *paths: swaps and exchange(*paths))
    publish.publish()
    (build / "html/old.html").write_text("old")
    publish.publish()
    assert [path.name for path in (build / "html").iterdir()] == ["index.html"]
    assert sorted(path.name for path in build.iterdir()) == ["html", "render"]
    assert (build / "render/index.html").read_text() == "new"


def test_a_copy_that_fails_leaves_the_last_site(build, monkeypatch):
    (build / "html").mkdir()
    (build / "html/old.html").write_text("old")

    def full_disk(source, target):
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(publish.shutil, "copytree", full_disk)
    with pytest.raises(OSError):
        publish.publish()
    assert (build / "html/old.html").read_text() == "old"


def test_a_build_that_is_interrupted_leaves_the_last_site_and_no_process(project):
    project.write("_build/html/index.html", "the last good site")
    project.sample(
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(90)'],\n"
        "                         start_new_session=True)\n"
        "open('started', 'w').write(str(child.pid))\n"
        "child.wait()\n"
    )
    command = [sys.executable, "-m", "tools.html"]
    log = open(project.root / "log", "w")  # A pipe would wait for the grandchild.
    build = subprocess.Popen(command, cwd=project.root, stdout=log, stderr=log)
    log.close()
    started = project.root / "gallery/tutorial/started"
    deadline = time.monotonic() + 600
    while not (started.exists() and started.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    grandchild = int(started.read_text())
    build.send_signal(signal.SIGTERM)
    assert build.wait(timeout=600) != 0
    assert project.read("_build/html/index.html") == "the last good site"
    output = project.read("log")
    assert "error: interrupted" in output and "was not changed" in output
    with pytest.raises(ProcessLookupError):
        os.kill(grandchild, 0)
