"""The commands that pages tell readers to type run in a copy of this clone."""

import json
import os
import re
import signal
import subprocess
import time
import urllib.request

import psutil
import pytest

from tools.pages import commands
from tools.pages.commands import CATALOGS, COMMANDS, ENVIRONMENT, Command, copy_clone
from tools.pages.provenance import FILE
from tools.project.languages import TRANSLATIONS
from tools.project.paths import LOCALES, ROOT, SITE, relative
from tools.state.records import Record


def typed(language):
    """The listings of a language that are typed into pages, and are to be run."""
    for listing in json.loads((SITE / FILE).read_text())["listings"]:
        is_run = listing["kind"] == "typed" and not listing["not_executed"]
        if is_run and listing["language"] == language:
            first, last = listing["lines"]
            lines = (ROOT / listing["file"]).read_text().split("\n")[first - 1 : last]
            yield listing, "\n".join(line.strip() for line in lines)


def test_nothing_but_commands_and_one_expression_is_typed():
    listings = json.loads((SITE / FILE).read_text())["listings"]
    kinds = [x["language"] for x in listings if x["kind"] == "typed" and not x["not_executed"]]
    shown = [text for _, text in typed("sh")]
    assert set(shown) == {command.typed for command in COMMANDS}
    assert sorted(kinds) == sorted([*("sh" for _ in shown), "none"])


def test_each_listing_has_the_runs_of_its_own_command():
    for listing, text in [*typed("sh"), *typed("none")]:
        assert listing["runs"] == [text]


def test_the_build_ran_what_takes_seconds():
    runs = json.loads((SITE / FILE).read_text())["runs"]
    assert {runs[x.typed]["status"] for x in COMMANDS if x.is_quick} == {0}


def test_a_run_is_one_of_what_the_command_needed(monkeypatch, tmp_path):
    (tmp_path / "Makefile").write_text("html:\n")
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    monkeypatch.setattr(commands, "NEEDED", ["Makefile"])
    monkeypatch.setattr("tools.state.records.RECORDS", tmp_path)
    command = Command("make html", "", "")
    with command.as_run.recorded():
        assert command.as_run.status is None, "it runs still"
    assert command.as_run.status == 0
    record = command.as_run.record
    Record(record.path, of_tools=False).save(record.load())
    assert command.as_run.status is None, "the record is one of other tools"
    with command.as_run.recorded():
        (tmp_path / "Makefile").write_text("html:\n\ttrue\n")
    assert command.as_run.status is None, "an edit meanwhile may have come too late"


def test_a_command_that_fails_is_named_with_its_page(monkeypatch, tmp_path):
    def copy(target):
        target.mkdir()
        return target

    monkeypatch.setattr(commands, "copy_clone", copy)
    monkeypatch.setattr("tools.state.records.RECORDS", tmp_path)
    guide = [ROOT / "docs/translation/guide.md"]
    monkeypatch.setattr(Command, "pages", lambda self: guide)
    for typed, message in (("echo wrong; exit 3", "wrong"), ("true", "")):
        command = Command(typed, "file", "text", is_quick=True)
        monkeypatch.setattr(commands, "COMMANDS", [command])
        with pytest.raises(commands.BuildError) as caught:
            commands.run_quick_commands()
        assert str(caught.value).startswith(f"docs/translation/guide.md: `{typed}` fails")
        assert message in str(caught.value) and command.as_run.status is None
    works = Command("pwd > file", "file", "clone\n", is_quick=True)
    monkeypatch.setattr(commands, "COMMANDS", [works])
    assert commands.run_quick_commands() == 1 and works.as_run.status == 0
    assert commands.run_quick_commands() == 0, "it was run"
    monkeypatch.setattr(Command, "pages", lambda self: [])
    works.as_run.record.forget()
    assert commands.run_quick_commands() == 0, "no page shows it"


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda x: x.typed)
def test_a_command_does_what_the_page_says(tmp_path, command):
    clone = copy_clone(tmp_path / "clone")
    with command.as_run.recorded():
        status, output = run(clone, command.typed)
        assert status == 0, output
        assert command.has_worked(clone), output


def run(clone, command):
    """Run a command; end it as Ctrl-C does when it serves pages and does not end."""
    environment = {**os.environ, **ENVIRONMENT}
    environment.pop("PYTHONPATH", None)
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
    [(_, expression)] = typed("none")
    assert expression == CATALOGS
    catalogs = sorted(LOCALES.rglob("*.po"))
    found = [re.fullmatch(expression, relative(path)) for path in catalogs]
    assert catalogs and all(found)
    assert {match["language"] for match in found} == {x.gettext for x in TRANSLATIONS}
    assert {"index", "tutorial/basics"} <= {match["component"] for match in found}
