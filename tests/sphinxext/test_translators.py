"""The page about translations names the people of the catalogs, and nobody else."""

from bs4 import BeautifulSoup

CONFIGURATION = """
extensions = ["sphinxext.translation.translators"]
translators = {"ko": ["A. Translator", "다른 번역자"]}
"""
PAGE = "Home\n====\n\nThose who translated:\n\n.. translators::\n"


def listed(documents):
    documents.write("index.rst", PAGE)
    section = BeautifulSoup(documents.page(), "html.parser").section
    return [item.span for item in section("li")]


def test_the_names_of_a_language(documents):
    documents.configure(CONFIGURATION)
    [names] = listed(documents)
    assert names["lang"] == "ko" and names.text == "한국어: A. Translator, 다른 번역자"


def test_where_nobody_is_named_there_is_no_list(documents):
    documents.configure(CONFIGURATION + "translators = {}")
    assert listed(documents) == []
