"""The preview follows an edit of a catalog, and leaves the build alone."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest

CATALOG = "locales/ko/LC_MESSAGES/index.po"


@pytest.fixture
def pages(project):
    project.write(
        "docs/index.md",
        "# Title\n\nA text.\n\nThe `first` text.\n\n```{toctree}\ntutorial/sample\n```\n"
        "```{literalinclude} ../gallery/tutorial/sample/shown.py\n```\n",
    )
    project.write("gallery/tutorial/sample/shown.py", "x = 1\n")
    project.sample(
        "print('never run')\nworker = 'sample/shown.py'\n"
        "# sphinx_gallery_start_ignore\nassert 1\n# sphinx_gallery_end_ignore\n"
    )
    project.write_catalog("index", {"A text.": "첫 번째 글."})
    project.write_catalog("tutorial/sample", {"A text.": "첫 번째 표본."})
    project.write_catalog("sphinx", {"Site navigation": "첫 번째 메뉴"})
    return project


@contextmanager
def previewing(project):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    command = [sys.executable, "-u", "-m", "tools.preview", "ko", port]
    with open(project.root / "preview.log", "w") as log:
        process = subprocess.Popen(command, cwd=project.root, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}/ko", process.pid
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


def test_every_edit_of_every_catalog_appears(pages):
    with previewing(pages) as (address, process):
        index, sample = f"{address}/index.html", f"{address}/tutorial/sample.html"
        wait_for(index, "첫 번째 글.")
        wait_for(sample, "never run")
        with urllib.request.urlopen(sample) as answer:
            assert "assert" not in answer.read().decode()
        before = set(os.listdir(f"/proc/{process}/fd"))
        last = {"index": "첫 번째", "tutorial/sample": "첫 번째", "sphinx": "첫 번째"}
        for number in ("두", "세", "네"):
            for page, shown_on in (("index", index), ("tutorial/sample", sample)):
                last[page] = edit(pages, page, last[page], f"{number} 번째")
                wait_for(shown_on, last[page] + (" 글." if page == "index" else " 표본."))
        for number in ("두", "세"):
            last["sphinx"] = edit(pages, "sphinx", last["sphinx"], f"{number} 번째")
            wait_for(sample, last["sphinx"] + " 메뉴")
        with urllib.request.urlopen(index) as answer:
            assert "세 번째 메뉴" in answer.read().decode()
        wait_until(lambda: not (pages.root / "_build/preview/unfinished-ko").exists())
        assert len(set(os.listdir(f"/proc/{process}/fd")) - before) < 5, "descriptors are closed"
    assert not (pages.root / "_build/html").exists()
    assert not (pages.root / "docs/tutorial").exists()


def test_an_edit_of_a_title_appears_in_the_menu_of_other_pages(pages):
    pages.write_catalog("tutorial/sample", {"sample": "첫 번째 표본"})
    with previewing(pages) as (address, _):
        wait_for(f"{address}/search.html", "첫 번째 표본")
        edit(pages, "tutorial/sample", "첫 번째", "두 번째")
        wait_for(f"{address}/tutorial/sample.html", "두 번째 표본")
        wait_for(f"{address}/search.html", "두 번째 표본")


def edit(project, page, old, new):
    project.replace(old, new, CATALOG.replace("index", page))
    return new


def test_who_reads_a_page_while_it_is_built_has_it_whole(pages):
    with previewing(pages) as (address, _):
        wait_for(f"{address}/index.html", "첫 번째 글.")
        with open(pages.root / "_build/preview/html/ko/index.html") as opened:
            edit(pages, "index", "첫 번째", "두 번째")
            wait_for(f"{address}/index.html", "두 번째 글.")
            text = opened.read()
    assert "첫 번째 글." in text and text.rstrip().endswith("</html>")


def test_an_edit_while_pages_are_built_appears_after_it(pages):
    """Also before the server listens."""
    with previewing(pages) as (address, _):
        wait_until((pages.root / "_build/preview/doctrees").exists)
        edit(pages, "index", "첫 번째", "두 번째")
        wait_for(f"{address}/index.html", "두 번째 글.")
        edit(pages, "index", "두 번째", "세 번째")
        wait_until((pages.root / "_build/preview/unfinished-ko").exists)
        edit(pages, "index", "세 번째", "네 번째")
        wait_for(f"{address}/index.html", "네 번째 글.")


def test_faults_are_named_as_a_translator_knows_them(pages):
    pages.write_catalog("index", {"A text.": "첫 번째 글.", "The `first` text.": "`second` 글."})
    with previewing(pages) as (address, _):
        wait_for(f"{address}/index.html", "첫 번째 글.")
        good = pages.read(CATALOG)
        pages.write(CATALOG, good.replace('msgid "A text."', "nonsense"))
        log_has(pages, "not built: ")
        pages.write(CATALOG, good.replace("첫 번째", "두 번째"))
        wait_for(f"{address}/index.html", "두 번째 글.")
        log_has(pages, "built in", times=2)
    log = pages.read("preview.log")
    refused = "refused a translation whose markup is not that of its source, 'The `first` text.'"
    assert f"{CATALOG}: WARNING: {refused}: it lacks code 'first', and adds code 'second'" in log
    assert re.search(r"not built: .*\nbuilding .*\nlocales.*\nbuilt in [^\n]*\n\Z", log), log
    assert "_build" not in log and "None" not in log


def log_has(project, text, times=1):
    wait_until(lambda: project.read("preview.log").count(text) >= times)


def wait_until(is_so, seconds=600):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


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
    for port in ("abc", "99999", "-1"):
        expected = f"error: PORT={port}: a port is a number up to 65535\n"
        assert pages.run("tools.preview", "ko", port) == (1, expected)
