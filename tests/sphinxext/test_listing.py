"""A listing is a part of a file, with its language and its name."""

import pytest
from bs4 import BeautifulSoup

CONFIGURATION = """
extensions = ["sphinxext.code.listing"]
listing_root = "code"
listing_include = "long/include/"
"""
PROGRAM = """\
def add(a, b):
    # [sum]
    total = a + b
    # [/sum]
    return total
"""


@pytest.fixture
def listing(documents):
    def listing(file, *options):
        """Return the HTML of a page with one listing."""
        lines = [f".. listing:: {file}", *(f"   {option}" for option in options)]
        documents.configure(CONFIGURATION)
        documents.write("code/a.py", PROGRAM)
        documents.write("code/a.hpp", "// [sum]\nint total;\n// [/sum]\n")
        documents.write("code/a.yml", "# [sum]\ntotal: 1\n# [/sum]\n")
        documents.write("index.rst", "\n".join(["Title", "=====", "", *lines, ""]))
        return BeautifulSoup(documents.page(), "html.parser")

    return listing


@pytest.mark.parametrize(
    ("file", "language", "text"),
    [
        ("a.py", "python", "total = a + b\n"),
        ("a.hpp", "cpp", "int total;\n"),
        ("a.yml", "yaml", "total: 1\n"),
    ],
)
def test_a_part_of_a_file(listing, file, language, text):
    page = listing(file, ":part: sum")
    assert page.select_one(f".highlight-{language} pre").get_text() == text
    assert page.select_one(".code-block-caption .caption-text").get_text() == file


def test_a_whole_file_without_a_caption_and_as_indented(listing):
    page = listing("a.py", ":no-caption:")
    assert page.select_one("pre").get_text() == PROGRAM
    assert not page.select(".code-block-caption")


def test_a_header_has_the_name_by_which_it_is_included(listing, documents):
    documents.write("code/long/include/frame/b.hpp", "int b;\n")
    page = listing("long/include/frame/b.hpp")
    assert page.select_one(".caption-text").get_text() == "frame/b.hpp"
    assert page.select_one("pre").get_text() == "int b;\n"


def test_own_options_win(listing):
    page = listing("a.py", ":part: sum", ":dedent: 0", ":caption: A sum", ":language: none")
    assert page.select_one(".highlight-none pre").get_text() == "    total = a + b\n"
    assert page.select_one(".caption-text").get_text() == "A sum"


def test_a_file_without_a_known_language_is_an_error(listing):
    with pytest.raises(AssertionError, match="code.csv: no language for '.csv'"):
        listing("code.csv")


def test_a_part_begins_the_listing(listing):
    with pytest.raises(AssertionError, match="a.py: :part: begins .* remove :start-after:"):
        listing("a.py", ":part: sum", ":start-after: total")
