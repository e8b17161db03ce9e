"""Diagrams: one drawing, its texts in each language, and clear errors."""

import json

import pytest

from sphinxext.pages.diagrams import _lines

CONFIGURATION = 'extensions = ["sphinxext.pages.diagrams"]\n'
DRAWING = """\
<svg viewBox="0 0 340 50">
  <desc>{{ _("Two boxes & an arrow.") }}</desc>
  {% for rank in range(2) %}
  <text>{{ _("rank {}").format(rank) }}</text>
  {% endfor %}
</svg>
"""


@pytest.fixture
def diagram(documents):
    documents.configure(CONFIGURATION)
    documents.write("index.rst", "Title\n=====\n\n.. diagram:: boxes\n")
    documents.write("_diagrams/boxes.svg", DRAWING)
    return documents


def test_texts_are_messages_of_the_page(diagram):
    status, output = diagram.build("gettext")
    assert status == 0, output
    template = (diagram.root / "out" / "index.pot").read_text()
    assert 'msgid "Two boxes & an arrow."' in template
    assert template.count('msgid "rank {}"') == 1
    plain = json.loads((diagram.root / "out" / "plain-messages.json").read_text())
    assert plain == {"index": {"Two boxes & an arrow.": True, "rank {}": False}}


def test_texts_are_translated_or_stay(diagram):
    diagram.write_catalog("index", {"rank {}": "랭크 {}"})
    page = diagram.page(language="ko")
    assert "<text>랭크 0</text>" in page and "<text>랭크 1</text>" in page
    assert "Two boxes &amp; an arrow." in page
    diagram.write_catalog("index", {"rank {}": "rank {}", "Two boxes & an arrow.": "상자 <둘>"})
    page = diagram.page(language="ko")
    assert "<text>rank 1</text>" in page and "<desc>상자 &lt;둘&gt;</desc>" in page


@pytest.mark.parametrize(
    "drawing, expected",
    [
        ("<svg>\n{% for %}</svg>", "boxes.svg:2"),
        ("<svg>{{ width }}</svg>", "boxes.svg: 'width' is undefined"),
        ("<svg><text></svg>", "boxes.svg: mismatched tag"),
        ('{% include "other.svg" %}', "other.svg"),
    ],
    ids=["syntax", "undefined", "tags", "missing"],
)
def test_a_broken_drawing_names_the_file_and_the_page(diagram, drawing, expected):
    diagram.write("_diagrams/boxes.svg", drawing)
    status, output = diagram.build()
    assert status != 0
    assert "index.rst:4" in output and expected in output


@pytest.mark.parametrize(
    "translation", ["랭크 {number}", "랭크 {0.__class__}", "랭크 {} {}", "랭크 {"]
)
def test_a_translation_with_other_braces_is_refused(diagram, translation):
    diagram.write_catalog("index", {"rank {}": translation})
    status, output = diagram.build(language="ko")
    assert status != 0 and "index.rst:4: WARNING: refused" in output and "'rank {}'" in output
    assert "<text>rank 1</text>" in (diagram.root / "out" / "index.html").read_text()


@pytest.mark.parametrize(
    "text, width, lines",
    [
        ("a short text", 20, ["a short text"]),
        ("one two three", 5, ["one two", "three"]),
        ("unbreakable", 2, ["unbreakable"]),
        ("한국어는 단어에서", 5, ["한국어는", "단어에서"]),
        ("中文在字之间换行", 5, ["中文在字", "之间换行"]),
        ("行首没有标点。", 6, ["行首没有", "标点。"]),
        ("进程 rank 在", 4.5, ["进程", "rank 在"]),
        (7, 5, ["7"]),
    ],
)
def test_lines(text, width, lines):
    assert _lines(text, width) == lines


@pytest.fixture
def plot(diagram):
    """The page with a drawing of numbers from a CSV file."""
    diagram.configure(CONFIGURATION + 'diagrams_data = {"times": "times.csv"}\n')
    circles = '{% for x in data("times") %}<circle cx="{{ x.ms | float | log10 }}"/>{% endfor %}'
    diagram.write("_diagrams/boxes.svg", f"<svg>{circles}</svg>")
    diagram.write("times.csv", "# a comment\nms\n10\n1000\n")
    return diagram


def test_numbers_come_from_csv_files(plot):
    page = plot.page()
    assert '<circle cx="1.0"/><circle cx="3.0"/>' in page
    plot.write("times.csv", "ms\n100\n")
    assert '<circle cx="2.0"/>' in plot.page(fresh=False)


@pytest.mark.parametrize(
    "name, expected",
    [("times", "No such file or directory: "), ("sizes", "no name 'sizes'")],
    ids=["missing", "unknown"],
)
def test_data_that_cannot_be_read_is_an_error(plot, name, expected):
    (plot.root / "times.csv").unlink()
    plot.write("_diagrams/boxes.svg", f'<svg>{{{{ data("{name}") }}}}</svg>')
    status, output = plot.build()
    assert status != 0 and "index.rst:4" in output and expected in output
