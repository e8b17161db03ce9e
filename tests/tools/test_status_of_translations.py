"""Status: what is translated and since when the rest waits, from catalogs and their history."""

import os
import re
import subprocess

import pytest

CATALOG = "locales/ko/LC_MESSAGES/index.po"
HEADER = """\
# 한국어 (ko)
msgid ""
msgstr ""
"Language: ko\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"""
FIRST = '\nmsgid "First."\nmsgstr "첫째."\n'
SECOND = '\nmsgid "Second."\nmsgstr ""\n'
FUZZY = '\n#, fuzzy\nmsgid "Third, changed."\nmsgstr "셋째."\n'


def git(folder, *arguments, day="2026-01-01"):
    """Run git as a person of the tests, on a day; return what it prints."""
    time = f"{day}T23:30:00+00:00"
    name = {"NAME": "name", "EMAIL": "name@example.org", "DATE": time}
    environment = {f"GIT_{who}_{x}": name[x] for who in ("AUTHOR", "COMMITTER") for x in name}
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **environment, "GIT_CONFIG_GLOBAL": os.devnull},
        check=True,
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.stdout.strip()


def commit(project, text, day):
    project.write(CATALOG, HEADER + text)
    git(project.root, "add", "--all", day=day)
    git(project.root, "commit", "--message", "change", day=day)


@pytest.fixture
def history(project):
    """Three commits: a translated text, one to translate, and one that has changed."""
    project.write(".gitignore", "_build\n__pycache__\n")
    git(project.root, "init", "--initial-branch=main")
    commit(project, FIRST, "2026-01-01")
    commit(project, FIRST + SECOND, "2026-01-05")
    commit(project, FIRST + SECOND + FUZZY, "2026-01-09")
    return project


def report(project, **environment):
    status, output = project.run("tools.i18n_status", **environment)
    assert status == 0, output
    return output


def test_states_and_days(history):
    lines = report(history, TZ="Asia/Seoul").splitlines()
    assert re.fullmatch(
        rf"{CATALOG}:10: +1 fuzzy, 1 untranslated, behind since 2026-01-05", lines[0]
    )
    assert lines[1:] == [
        "한국어 (ko): 1 of 3 messages translated, 0 of 1 catalogs complete",
        "简体中文 (zh_CN): 0 of 0 messages translated, 0 of 0 catalogs complete",
    ]


def test_a_complete_page_is_not_listed(history):
    commit(history, FIRST, "2026-01-20")
    assert report(history).startswith("한국어 (ko): 1 of 1 messages translated, 1 of 1 catalogs")


def test_it_prints_one_page_and_ends_with_the_totals(history):
    for number in range(60):
        history.write(CATALOG.replace("index", f"page-{number}"), HEADER + SECOND)
    lines = report(history).splitlines()
    assert len(lines) == 11 and lines[8] == "53 more catalogs: 53 fuzzy or untranslated"
    assert lines[9] == "한국어 (ko): 1 of 63 messages translated, 0 of 61 catalogs complete"


def test_what_is_not_committed_has_no_day(history):
    commit(history, FIRST, "2026-01-20")
    history.write(CATALOG, HEADER + FIRST + SECOND)
    assert re.search(r"index.po:10: +0 fuzzy, 1 untranslated$", report(history), re.M)


def test_a_catalog_that_lost_translations_is_named(history):
    history.write(CATALOG, HEADER + SECOND)
    assert f"{CATALOG}:1: lacks 1 messages that the last commit" in history.fail(
        "tools.i18n_status"
    )


def test_a_shallow_clone_has_no_days(history):
    clone = history.root.parent / "shallow"
    git(clone.parent, "clone", "--depth=1", history.root.as_uri(), str(clone))
    history.root = clone
    output = report(history)
    assert "1 of 3 messages translated" in output and "2026" not in output


def test_a_malformed_catalog_is_named(history):
    history.write(CATALOG, HEADER + '\nnonsense "First."\n')
    for command in ("tools.i18n_status", "tools.render"):
        history.write("docs/tutorial/x.rst", "X\n=\n")
        assert f"{CATALOG}:7: malformed" in history.fail(*command.split())


SHOW = """
import json
from tools.translate.status import for_sphinx
print(json.dumps(for_sphinx()["ko"]["index"]))
"""


def test_what_pages_are_told(history):
    history.write("show.py", SHOW)
    status, output = history.run("show")
    assert status == 0, output
    assert '"last_change": "2026-01-09", "behind_since": "2026-01-05", "days_behind": 4' in output
    assert (
        f'"edit": "https://git.example.org/c10d-backend-tutorial/edit/main/{CATALOG}#L10"' in output
    )


def test_a_branch_that_changed_nothing_in_the_end_has_no_day(history):
    git(history.root, "switch", "--create", "draft")
    commit(history, FIRST + SECOND, "2026-01-20")
    git(history.root, "switch", "main")
    git(history.root, "merge", "--strategy=ours", "--no-edit", "draft", day="2026-01-30")
    history.write("show.py", SHOW)
    assert '"last_change": "2026-01-09"' in history.run("show")[1]
