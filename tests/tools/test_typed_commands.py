"""What pages tell readers to type is taken from there, and run in a copy of this clone.

A listing that is typed into a page, and not included from a file that is executed, has to
be a command or an expression that stands here.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request

import psutil
import pytest

from tools.pages.provenance import FILE, note_commands
from tools.project.languages import TRANSLATIONS
from tools.project.paths import LOCALES, ROOT, SITE, relative

pytestmark = pytest.mark.slow

# What a command leaves behind in the clone: a file, and a text in it.
EXPECTED = {
    "make html": ("_build/html/ko/index.html", '<html class="no-js" lang="ko"'),
    "make preview LANGUAGE=ko": ("_build/preview/html/ko/index.html", 'lang="ko"'),
    "make i18n-update i18n-check": ("locales/ko/LC_MESSAGES/index.po", '\nmsgid ""\n'),
    "make i18n-add LANGUAGE=ja": ("locales/ja/LC_MESSAGES/index.po", 'msgstr ""\n\n'),
}
NOT_COPIED = shutil.ignore_patterns(".git", ".venv*", "_build", "__pycache__", "*.mo")


def typed(language):
    """The listings of a language that are typed into pages."""
    file = SITE / FILE
    for listing in json.loads(file.read_text())["listings"] if file.is_file() else []:
        if listing["kind"] == "typed" and listing["language"] == language:
            first, last = listing["lines"]
            lines = (ROOT / listing["file"]).read_text().split("\n")[first - 1 : last]
            yield "\n".join(line.strip() for line in lines)


COMMANDS = list(typed("sh"))


@pytest.fixture(scope="module")
def durations():
    """The seconds of each command; kept for the pages when all of them ended well."""
    seconds = {}
    yield seconds
    if set(seconds) == set(COMMANDS):
        note_commands(sum(seconds.values()))


@pytest.fixture
def clone(tmp_path):
    clone = tmp_path / "clone"
    shutil.copytree(ROOT, clone, ignore=NOT_COPIED)
    for name in ("execute", "extension"):  # Nothing has to be executed again.
        shutil.copytree(ROOT / "_build" / name, clone / "_build" / name)
    (clone / ".venv").symlink_to(ROOT / ".venv")
    return clone


def test_nothing_but_commands_and_one_expression_is_typed():
    listings = json.loads((SITE / FILE).read_text())["listings"]
    kinds = [x["language"] for x in listings if x["kind"] == "typed"]
    assert set(COMMANDS) == set(EXPECTED)
    assert sorted(kinds) == sorted([*("sh" for _ in COMMANDS), "none"])


@pytest.mark.timeout(400)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_does_what_the_page_says(clone, durations, command):
    started = time.monotonic()
    status, output = run(clone, command)
    seconds = time.monotonic() - started
    assert status == 0, output
    file, text = EXPECTED[command]
    assert text in (clone / file).read_text(), output
    durations[command] = seconds


def run(clone, command):
    """Run a command; end it as Ctrl-C does when it serves pages and does not end."""
    # This environment is installed already; the caller may itself be make.
    environment = {**os.environ, "PYTHON": "true"}
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH"):
        environment.pop(name, None)
    log = clone / "log"
    with open(log, "w") as file:
        process = psutil.Popen(
            ["sh", "-ec", command],
            cwd=clone,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        while process.poll() is None:
            serving = re.search(r"(http://127\S+) follows your edits", log.read_text())
            if serving:
                fetch(serving[1])
                [server] = [x for x in process.children(recursive=True) if not x.children()]
                server.send_signal(signal.SIGINT)
                process.wait(30)
            time.sleep(0.1)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return process.returncode, log.read_text()


def fetch(address):
    for _ in range(100):
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                assert answer.status == 200
                return
        except OSError:
            time.sleep(0.1)  # It says so right before it listens.
    raise AssertionError(f"nothing at {address}")


def test_the_expression_for_weblate_finds_each_catalog():
    [expression] = typed("none")
    catalogs = sorted(LOCALES.rglob("*.po"))
    found = [re.fullmatch(expression, relative(path)) for path in catalogs]
    assert catalogs and all(found)
    assert {match["language"] for match in found} == {x.gettext for x in TRANSLATIONS}
    assert {"index", "tutorial/basics"} <= {match["component"] for match in found}
