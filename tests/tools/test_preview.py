"""The preview follows an edit of a catalog, and leaves the build alone."""

import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest

from tools.project.paths import LOCALES

CATALOG = "locales/ko/LC_MESSAGES/index.po"


@pytest.fixture
def pages(project):
    project.write(
        "docs/index.md",
        "# Title\n\nA text.\n\n```{toctree}\ntutorial/sample\n```\n"
        "```{literalinclude} ../gallery/tutorial/sample/shown.py\n```\n",
    )
    project.write("gallery/tutorial/sample/shown.py", "x = 1\n")
    project.sample(
        "print('never run')\nworker = 'sample/shown.py'\n"
        "# sphinx_gallery_start_ignore\nassert 1\n# sphinx_gallery_end_ignore\n"
    )
    project.write_catalog("index", {"A text.": "첫 번째 글."})
    shutil.copyfile(
        LOCALES / "ko/LC_MESSAGES/sphinx.po", project.root / "locales/ko/LC_MESSAGES/sphinx.po"
    )
    return project


@contextmanager
def previewing(project):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    command = [sys.executable, "-u", "-m", "tools.preview", "ko", port]
    with open(project.root / "preview.log", "w") as log:
        process = subprocess.Popen(command, cwd=project.root, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}/ko"
    finally:
        process.kill()
        process.wait()


def wait_for(address, expected, seconds=600):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(address, timeout=600) as answer:
                if expected in answer.read().decode():
                    return
        except OSError:
            pass  # Not there yet.
        time.sleep(0.05)
    raise AssertionError(f"{expected!r} did not appear at {address}")


def test_an_edit_of_a_message_appears(pages):
    with previewing(pages) as address:
        wait_for(f"{address}/index.html", "첫 번째 글.")
        wait_for(f"{address}/tutorial/sample.html", "never run")
        with urllib.request.urlopen(f"{address}/tutorial/sample.html") as answer:
            assert "assert" not in answer.read().decode()
        good = pages.read(CATALOG)
        pages.write(CATALOG, good.replace('msgid "A text."', "nonsense"))
        log_has(pages, "not built: ")
        pages.write(CATALOG, good.replace("첫 번째", "두 번째"))
        wait_for(f"{address}/index.html", "두 번째 글.")
    assert not (pages.root / "_build/html").exists()
    assert not (pages.root / "docs/tutorial").exists()


def log_has(project, text):
    end = time.monotonic() + 600
    while text not in project.read("preview.log"):
        assert time.monotonic() < end, project.read("preview.log")
        time.sleep(0.05)


def test_an_interrupt_while_it_builds(pages):
    command = [sys.executable, "-m", "tools.preview", "ko"]
    with subprocess.Popen(
        command, cwd=pages.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        while not (pages.root / "_build/preview/doctrees").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=600)[0]
    assert process.returncode == 0 and "Traceback" not in output, output


def test_what_prevents_it_is_said(pages):
    output = pages.run("tools.preview", "xx")[1]
    assert "error: name a language: make preview LANGUAGE=en|ko|zh_CN" in output
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"port {port} is in use" in pages.fail("tools.preview", "ko", port)
