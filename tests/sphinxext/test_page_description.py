"""A page is described by the beginning of its first paragraph."""

import pytest

from sphinxext.pages.page_description import describe


def description(documents, text, language="en"):
    documents.configure('extensions = ["sphinxext.pages.page_description"]')
    documents.write("index.rst", f"Title\n=====\n\n.. note:: Not this.\n\n{text}\n\nMore.\n")
    documents.write("templates/page.html", "[{{ description }}]")
    return documents.page(language=language)


def test_it_is_plain_text_of_the_first_paragraph(documents):
    assert description(documents, "Some ``code`` and *more*\ntext.") == "[Some code and more text.]"


def test_it_is_translated(documents):
    documents.write_catalog("index", {"Some *text*.": "어떤 *글* 입니다."})
    assert description(documents, "Some *text*.", "ko") == "[어떤 글 입니다.]"


def test_a_page_without_a_paragraph_has_none(documents):
    assert description(documents, "- a list").startswith("[More.")
    documents.write("index.rst", "Title\n=====\n\n- a list\n")
    assert documents.page() == "[]"


@pytest.mark.parametrize(
    "text, width, expected",
    [
        ("One two.", 20, "One two."),
        ("One two three. Four five six.", 20, "One two three."),
        ("One. Two three four five six.", 20, "One. Two three four…"),
        ("One two three, four five.", 16, "One two three…"),
        ("Version 2.13 of a library is new.", 22, "Version 2.13 of a…"),
        ("One two three. See:", 20, "One two three."),
        ("One two three:", 20, "One two three…"),
        ("后端是什么。它做什么呢？这里说明。", 26, "后端是什么。它做什么呢？"),
        ("后端是一个类，它在进程之间传送数据。", 16, "后端是一个类…"),
    ],
)
def test_long_text_ends_with_a_sentence_or_a_word(text, width, expected):
    assert describe(text, width) == expected
