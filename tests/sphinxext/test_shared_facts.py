"""A page is written again if it shows something that changed on another page, and only then."""

import os
from types import SimpleNamespace

import pytest

from sphinxext.rebuild import shared_facts

INDEX = "Home\n====\n\n.. toctree::\n\n   first\n   second\n"
FIRST = "First\n=====\n\nSee :doc:`second`.\n"
SECOND = "Second\n======\n\nA text.\n\n.. _here:\n\nPart\n----\n\nMore.\n"


@pytest.fixture
def site(documents):
    extensions = "extensions = ['sphinxext.rebuild.shared_facts']\n"
    documents.write("conf.py", extensions + "html_theme = 'basic'\nexclude_patterns = ['out']\n")
    documents.write("index.rst", INDEX)
    documents.write("first.rst", FIRST)
    documents.write("second.rst", SECOND)
    documents.page()
    return documents


def written(site, name, text):
    """Change a page, and return the pages that the next build writes.

    Sphinx itself writes those again that have the page in a toctree.
    """
    out = site.root / "out"
    before = {path: path.stat().st_mtime_ns for path in out.glob("*.html")}
    site.write(name, text)
    status, output = site.build(fresh=False)
    assert status == 0, output
    pages = ("first", "index", "second")
    return [x for x in pages if (p := out / f"{x}.html").stat().st_mtime_ns != before.get(p)]


def test_a_text_belongs_to_its_page(site):
    assert written(site, "second.rst", SECOND.replace("A text", "Another text")) == [
        "index",
        "second",
    ]


@pytest.mark.parametrize(
    "old, new",
    [("Second\n======", "2nd page\n========"), ("Part\n----", "Parts\n-----"), ("_here", "_there")],
    ids=["title", "section", "label"],
)
def test_titles_and_labels_are_shared(site, old, new):
    assert written(site, "second.rst", SECOND.replace(old, new)) == ["first", "index", "second"]


def test_metadata_is_shared_unless_it_is_said_to_be_private(site):
    assert "first" in written(site, "second.rst", f":key: value\n\n{SECOND}")
    config = (site.root / "conf.py").read_text() + "shared_facts_private_metadata = ['key']\n"
    site.write("conf.py", config)
    site.build(fresh=False)
    assert written(site, "second.rst", f":key: other\n\n{SECOND}") == ["index", "second"]


def test_what_no_page_has_any_more_is_removed(site):
    site.write("file.txt", "text")
    downloads = site.root / "out/_downloads"
    written(site, "first.rst", f"{FIRST}\n:download:`file.txt`\n")
    assert list(downloads.rglob("file.txt"))
    written(site, "first.rst", FIRST)
    assert not downloads.exists()


def test_a_document_with_another_in_it_is_read_again(site):
    site.write("part.rst", "Old words.")
    site.write("first.rst", f"{FIRST}\n.. include:: part.rst\n")
    site.page("first", fresh=False)
    times = (site.root / "part.rst").stat()
    site.write("part.rst", "New words.")
    os.utime(site.root / "part.rst", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "New words." in site.page("first", fresh=False)


def test_only_documents_that_include_others_are_always_read_again():
    env = SimpleNamespace(included={"a": set(), "b": {"c"}})
    assert shared_facts.read_again(None, env, set(), set(), set()) == ["b"]
