"""The site is replaced whole, or not at all."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tools.publish import stage as publish


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.setattr(publish, "BUILD", tmp_path)
    monkeypatch.setattr(publish, "RENDERED", tmp_path / "render")
    monkeypatch.setattr(publish, "SITE", tmp_path / "html")
    (tmp_path / "render").mkdir()
    (tmp_path / "render/index.html").write_text("new")
    return tmp_path


def test_the_first_site(build):
    publish.publish()
    assert (build / "html/index.html").read_text() == "new"


@pytest.mark.parametrize("atomic", [True, False])
def test_the_next_site_takes_the_place_of_the_last(build, monkeypatch, atomic):
    if not atomic:
        monkeypatch.setattr(publish, "_exchange", lambda one, other: False)
    (build / "html").mkdir()
    (build / "html/old.html").write_text("old")
    publish.publish()
    assert [path.name for path in (build / "html").iterdir()] == ["index.html"]
    assert sorted(path.name for path in build.iterdir()) == ["html", "render"]


def test_this_system_swaps_in_one_call(build):
    for name in ("a", "b"):
        (build / name).mkdir()
        (build / name / name).touch()
    assert publish._exchange(build / "a", build / "b")
    assert (build / "a/b").exists() and (build / "b/a").exists()


def test_a_copy_that_fails_leaves_the_last_site(build, monkeypatch):
    (build / "html").mkdir()
    (build / "html/old.html").write_text("old")

    def full_disk(source, target, **options):
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(publish.shutil, "copytree", full_disk)
    with pytest.raises(OSError):
        publish.publish()
    assert (build / "html/old.html").read_text() == "old"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_build_that_is_killed_leaves_the_last_site_and_no_process(project, how):
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
    deadline = time.monotonic() + 60
    while not (started.exists() and started.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    grandchild = int(started.read_text())
    build.send_signal(how)
    assert build.wait(timeout=30) != 0
    assert project.read("_build/html/index.html") == "the last good site"
    if how is signal.SIGKILL:  # Nothing can clean up after that; do it here.
        os.kill(grandchild, signal.SIGKILL)
        return
    output = project.read("log")
    assert "error: interrupted" in output and "was not changed" in output
    with pytest.raises(ProcessLookupError):
        os.kill(grandchild, 0)


def test_what_is_the_same_is_not_copied_and_what_was_damaged_is(build):
    for name in ("same", "damaged"):
        (build / "render" / name).write_text("good")
    publish.publish()
    before = (build / "html/same").stat().st_ino
    (build / "html/damaged").write_text("evil")
    publish.publish()
    assert (build / "html/same").stat().st_ino == before
    assert (build / "html/same").stat().st_nlink == 1
    assert (build / "html/damaged").read_text() == "good"
    (build / "render/same").write_text("next")
    assert (build / "html/same").read_text() == "good", "it is no link to what is rendered"


def test_a_file_system_without_links(build, monkeypatch):
    monkeypatch.setattr(publish.os, "link", _no_links)
    publish.publish()
    publish.publish()
    assert (build / "html/index.html").read_text() == "new"


def _no_links(source, target):
    raise PermissionError(1, "Operation not permitted", source)
