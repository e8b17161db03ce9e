"""Reviewers see what changed in the translations since a commit, and what it was before."""

import re

import pytest
from bs4 import BeautifulSoup
from test_status_of_translations import git

FOLDER = "locales/ko/LC_MESSAGES"
BEFORE = {
    "The rank does not wait for the others.": "랭크는 다른 랭크를 기다리지 않습니다.",
    "It stays.": "그대로입니다.",
    "The driver calls the workers, one after the other.": "드라이버가 워커를 호출합니다.",
}


@pytest.fixture
def history(project):
    project.write(".gitignore", "_build\n__pycache__\n")
    git(project.root, "init", "--initial-branch=main")
    project.write_catalog("a", BEFORE)
    project.write_catalog("b", {"Another page.": "다른 쪽입니다."})
    git(project.root, "add", "--all")
    git(project.root, "commit", "--message", "before")
    return project


def review(project, since="HEAD"):
    status, output = project.run("tools.i18n_review", since)
    assert status == 0, output
    page = BeautifulSoup(project.read("_build/review.html"), "html.parser")
    rows = [row.find_all("td") for row in page.select("tbody tr") if row.find("td")]
    return output, [[cell.get_text() for cell in row] for row in rows], page


def test_a_changed_translation_is_marked(history):
    source, translation = next(iter(BEFORE.items()))
    changed = translation.replace("기다리지 않습니다", "기다립니다")
    history.write_catalog("a", BEFORE | {source: changed})
    output, rows, page = review(history)
    assert "한국어 (ko): 1 messages changed" in output
    assert rows == [[source, source, translation, changed]]
    assert page.find("del").get_text() == "기다리지 않습니다"
    assert re.search(rf"{FOLDER}/a\.po:\d+", page.get_text())


def test_changed_english_stands_beside_what_it_was_in_page_order(history):
    texts = {
        "The rank waits for the others.": "랭크는 다른 랭크를 기다립니다.",
        "Something quite new, and long.": "",
        "It stays.": "그대로입니다.",
        "The workers call the driver, one after the other.": "드라이버가 워커를 호출합니다.",
    }
    history.write_catalog("a", texts)
    history.replace('msgid "The workers', '#, fuzzy\nmsgid "The workers', f"{FOLDER}/a.po")
    first, *_, last = BEFORE
    _, rows, page = review(history)
    assert [row[1] for row in rows] == [x for x in texts if x != "It stays."]
    assert [row[0] for row in rows] == [first, "new", last]
    assert "untranslated" in page.get_text() and "fuzzy" in page.get_text()


def test_a_renamed_page_and_a_moved_text_have_not_changed(history):
    git(history.root, "mv", f"{FOLDER}/a.po", f"{FOLDER}/renamed.po")
    history.write_catalog("b", {"Another page.": "다른 쪽입니다.", "It stays.": "그대로입니다."})
    assert "0 messages changed" in review(history)[0]
    renamed = BEFORE | {"It stays.": "그대로 있습니다."}
    history.write_catalog("renamed", renamed)
    assert [row[2:] for row in review(history)[1]] == [["그대로입니다.", "그대로 있습니다."]]


def test_what_nobody_sees_is_shown(history):
    history.write_catalog("a", BEFORE | {"It stays.": "그대\u202e로<b>\u200b"})
    assert review(history)[1][0][3] == "그대U+202E로<b>U+200B"


@pytest.mark.parametrize("since", ["nonsense", "--output=x", "HEAD:README.md"])
def test_what_is_no_commit_is_named(history, since):
    assert "git knows no such commit" in history.fail("tools.i18n_review", since)


def test_without_a_commit(history):
    assert "make i18n-review SINCE=main" in history.fail("tools.i18n_review", "")
