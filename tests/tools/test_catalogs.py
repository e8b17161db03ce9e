"""Catalogs: merging is stable, and each fault is named with file and line."""

import shutil

import pytest

from tools.paths import LOCALES

PAGE = "locales/ko/LC_MESSAGES/index.po"


@pytest.fixture
def pages(project):
    """A site of two pages, with translations of all their messages."""
    project.write("docs/index.md", "# Title\n\nThe `first` text.\n")
    project.write("docs/auto_gallery/sample.rst", ":orphan:\n\nSample\n======\n")
    project.fail("tools.catalogs", "check")
    assert project.run("tools.catalogs", "update")[0] == 0
    for language in ("ko", "zh_CN"):
        folder = f"locales/{language}/LC_MESSAGES"
        shutil.copyfile(LOCALES / language / "LC_MESSAGES/sphinx.po", project.root / folder / "sphinx.po")
        for page in ("index", "auto_gallery/sample"):
            text = project.read(f"{folder}/{page}.po").split("\n\n", 1)
            body = text[1].replace('msgstr ""', 'msgstr "T"')
            body = body.replace('`first` text."\nmsgstr "T"', '`first` text."\nmsgstr "`first` T"')
            project.write(f"{folder}/{page}.po", text[0] + "\n\n" + body)
    return project


def test_complete_catalogs_pass(pages):
    status, output = pages.run("tools.catalogs", "check")
    assert status == 0, output


def test_updating_twice_changes_no_byte(pages):
    assert pages.run("tools.catalogs", "update")[0] == 0
    before = pages.read(PAGE)
    assert pages.run("tools.catalogs", "update") == (0, "")
    assert pages.read(PAGE) == before


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ('msgstr "`first` T"', 'msgstr ""', "not translated: 'The `first` text.'"),
        ('msgid "Title"', '#, fuzzy\nmsgid "Title"', "fuzzy: 'Title'"),
        ('msgid "Title"', 'msgid "Tittle"', "not in the English text: 'Tittle'"),
        ('msgid "Title"', 'nonsense "Title"', "malformed catalog"),
    ],
    ids=["untranslated", "fuzzy", "msgid", "keyword"],
)
def test_a_fault_is_named_with_its_place(pages, old, new, expected):
    text = pages.read(PAGE)
    assert old in text
    pages.write(PAGE, text.replace(old, new, 1))
    output = pages.fail("tools.catalogs", "check")
    assert expected in output
    [line] = [line for line in output.splitlines() if expected in line]
    assert f"{PAGE}:" in line and line.split(f"{PAGE}:")[1].split(":")[0].isdigit()


def test_a_changed_english_text_is_noticed(pages):
    pages.write("docs/index.md", "# Title\n\nThe `second` text.\n")
    output = pages.fail("tools.catalogs", "check")
    assert f"{PAGE}: lacks 'The `second` text.'" in output
    assert pages.run("tools.catalogs", "update")[0] == 0
    assert "fuzzy: 'The `second` text.'" in pages.fail("tools.catalogs", "check")
