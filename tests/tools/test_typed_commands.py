"""The commands that pages tell readers to type run in a copy of this clone."""

import json
import os
import re
import signal
import subprocess
import time
from contextlib import suppress

import psutil
import pytest

from tools.pages import commands
from tools.pages.commands import CATALOGS, COMMANDS, ENVIRONMENT, Command, copy_clone
from tools.pages.provenance import FILE
from tools.project.languages import TRANSLATIONS
from tools.project.paths import DOCS, LOCALES, ROOT, SITE, relative
from tools.state.records import Record


def test_nothing_but_commands_is_typed_into_pages():
    listings = json.loads((SITE / FILE).read_text())["listings"]
    typed = [x for x in listings if x["kind"] == "typed" and not x["not_executed"]]
    # The script of a page runs what the page says itself.
    typed = [x for x in typed if (DOCS / f"{x['page']}.md").is_file()]
    assert {x["typed"] for x in typed} == {x.typed for x in COMMANDS if _is_on_a_page(x)}
    assert all(x["runs"] == [x["typed"]] for x in typed)


def _is_on_a_page(command):
    return any(DOCS in path.parents for path in command.pages())


def test_every_command_is_typed_by_readers_of_a_page_or_a_guide():
    assert [x.typed for x in COMMANDS if not x.pages()] == []


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
    guide = [ROOT / "TRANSLATING.md"]
    monkeypatch.setattr(Command, "pages", lambda self: guide)
    for typed, message in (("echo wrong; exit 3", "wrong"), ("true", "")):
        command = Command(typed, "file", "text", is_quick=True)
        monkeypatch.setattr(commands, "COMMANDS", [command])
        with pytest.raises(commands.BuildError) as caught:
            commands.run_quick_commands()
        assert str(caught.value).startswith(f"TRANSLATING.md: `{typed}` fails")
        assert message in str(caught.value) and command.as_run.status is None
    works = Command("pwd > file", "file", "clone\n", is_quick=True)
    monkeypatch.setattr(commands, "COMMANDS", [works])
    assert commands.run_quick_commands() == 1 and works.as_run.status == 0
    assert commands.run_quick_commands() == 0, "it was run"
    monkeypatch.setattr(Command, "pages", lambda self: [])
    works.as_run.record.forget()
    assert commands.run_quick_commands() == 0, "no page shows it"


@pytest.mark.slow
@pytest.mark.parametrize("command", [x for x in COMMANDS if not x.is_quick], ids=lambda x: x.typed)
def test_a_command_that_takes_long_does_what_the_page_says(tmp_path, command):
    """One that serves pages does not end by itself: Ctrl-C ends it."""
    clone, log = copy_clone(tmp_path / "clone"), tmp_path / "log"
    with command.as_run.recorded(), open(log, "w") as file:
        process = psutil.Popen(
            ["sh", "-ec", command.typed],
            cwd=clone,
            env={**os.environ, **ENVIRONMENT, "PYTHONPATH": ""},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                if "follows your edits" in log.read_text():
                    [server] = [x for x in process.children(recursive=True) if not x.children()]
                    server.send_signal(signal.SIGINT)
                    process.wait(30)
                time.sleep(0.1)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == 0 and command.has_worked(clone), log.read_text()


def test_the_expression_for_weblate_finds_each_catalog():
    catalogs = sorted(LOCALES.rglob("*.po"))
    found = [re.fullmatch(CATALOGS, relative(path)) for path in catalogs]
    assert catalogs and all(found)
    assert {match["language"] for match in found} == {x.gettext for x in TRANSLATIONS}
    assert {"index", "tutorial/basics"} <= {match["component"] for match in found}
    assert CATALOGS in (ROOT / "TRANSLATING.md").read_text().splitlines()
