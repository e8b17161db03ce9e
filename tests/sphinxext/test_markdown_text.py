"""Markdown contains everything that a page says."""

import pytest
from docutils.core import publish_doctree
from markdown_it import MarkdownIt

from sphinxext.text.markdown_text import Markdown

ADDRESS = "https://example.org/en/folder/page.html"


def markdown(rest):
    document = publish_doctree(rest, settings_overrides={"doctitle_xform": False})
    return Markdown(None, ADDRESS).blocks(document)


def html(rest):
    return MarkdownIt("commonmark").enable("table").render(markdown(rest))


@pytest.mark.parametrize(
    "rest, expected",
    [
        ("*a* and **b**", "*a* and **b**"),
        ("``a|b`c``", "``a|b`c``"),
        ("`text <https://a.org/>`__", "[text](https://a.org/)"),
        ("`text <../other.html#x>`__", "[text](https://example.org/en/other.html#x)"),
        ("snake_case and _private", "snake_case and \\_private"),
        ("1 * 2 <b> [x]", "1 \\* 2 \\<b\\> \\[x\\]"),
        ("* a\n* b", "- a\n- b"),
        ("3. a\n4. b", "3. a\n4. b"),
        ("* a\n\n  b\n* c", "- a\n\n  b\n\n- c"),
        ("a\n  b", "**a**\n\n> b"),
        (".. code:: python\n\n   '```'", "````\n'```'\n````"),
        (".. comment", ""),
        ("\\- no list", "\\- no list"),
        ("a\nb", "a b"),
    ],
)
def test_elements(rest, expected):
    assert markdown(rest) == expected


def test_emphasis_beside_punctuation_of_full_width_is_emphasis():
    assert "<em>（集合）</em>操作" in html("*（集合）*\\ 操作")
    assert "<em>집합 연산</em>(collective)" in html("*집합 연산*\\ (collective)")


def test_a_note_is_a_quotation():
    assert markdown(".. note::\n\n   a\n\n   b") == "> **Note**\n>\n> a\n>\n> b"


def test_a_table():
    rest = ".. list-table::\n   :header-rows: 1\n\n   * - A\n     - B\n   * - ``a|b``\n     - c"
    assert markdown(rest) == "| A | B |\n| --- | --- |\n| `a\\|b` | c |"
    assert "<td><code>a|b</code></td>" in html(rest)


def test_text_is_no_markup():
    for text in ["\\*a\\*", "\\`a\\`", "# a", "1\\) a", "\\- a", "<script>", "| a |", "$x$"]:
        shown = html(text)
        assert "<em>" not in shown and "<code>" not in shown and "<li>" not in shown
        assert "<h1>" not in shown and "<script>" not in shown
