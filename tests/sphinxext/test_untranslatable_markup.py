"""What no translator could translate is refused in English, with its place and a way out."""

import re

import pytest

CONFIGURATION = """
extensions = ["myst_parser", "sphinxext.translation.nothing_to_translate",
              "sphinxext.translation.untranslatable_markup"]
myst_enable_extensions = ["deflist"]
"""
HTML = "raw HTML, "
BREAK = "a line break among words: begin a paragraph, an item or a row"
# Each on line 3 of a page of its own: its suffix, the text, and what is said of it.
REFUSED = {
    "block": ("md", "<div>Some words</div>", f"{HTML}'<div>Some words</div>': write it as"),
    "summary": ("md", "<details><summary>Words</summary>\n\nA text.\n\n</details>", HTML),
    "entity": ("md", "<p>&eacute;</p>", HTML),
    "attribute": ("md", '<img src="x.png" alt="Some words">', HTML),
    "label": ("md", "<nav aria-label=Words></nav>", HTML),
    "inline": ("md", "Press <kbd>1</kbd> now.", f"{HTML}'<kbd>'"),
    "comment": ("md", "One <!-- 1 --> text.", HTML),
    "backslash": ("md", "One line,\\\nand the next.", BREAK),
    "spaces": ("md", "One line,  \nand the next.", BREAK),
    "in a list": ("md", "- One line,\\\n  and the next.", BREAK),
    "in emphasis": ("md", "*One line,\\\nand the next.*", BREAK),
    "in a term": ("md", "One<br>term\n: A text.", BREAK),
    "in a cell": ("md", "| One<br>cell |\n| --- |\n| 1 |", BREAK),
    "image": ("md", "See ![a flower](x.png) here.", "an image among words: give it a paragraph"),
    "directive": ("rst", ".. raw:: html\n\n   <div>Some words</div>", HTML),
    "role": ("rst", ".. role:: h(raw)\n   :format: html\n\nOne :h:`<i>` text.", HTML),
    "substitution": ("rst", ".. |x| replace:: some words\n\nA |x|.", "a substitution with words"),
}
ALLOWED = """# Title

<div class="wide">

A text.

</div>

<!-- A comment. -->

<script>const words = "none";</script>

<hr title="1" class="words">

![a flower](x.png)

[![a flower](x.png)](https://example.org/)
"""
ALSO_ALLOWED = """Title
=====

| One line,
| and the next.

.. |flower| image:: x.png
   :alt: a flower
.. |dash| unicode:: U+2014

See |flower| |dash| here.

.. raw:: latex

   Some words
"""


@pytest.fixture(scope="module")
def output(make_documents):
    """Return what Sphinx says of all pages, in a language without any translation."""
    documents = make_documents()
    documents.configure(CONFIGURATION)
    documents.write("x.png", "no image, and nobody looks")
    pages = [f"page-{number}" for number in range(len(REFUSED))]
    documents.write("index.rst", "T\n=\n\n.. toctree::\n   :glob:\n\n   page-*\n   allowed*\n")
    documents.write("allowed.md", ALLOWED)
    documents.write("allowed-too.rst", ALSO_ALLOWED)
    for page, (suffix, text, _) in zip(pages, REFUSED.values(), strict=True):
        title = "# Title\n\n" if suffix == "md" else "T\n=\n"
        documents.write(f"{page}.{suffix}", f"{title}{text}\n")
    status, output = documents.build(builder="gettext", language="ko")
    assert status != 0, "a warning, and warnings are errors"
    return output


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused(output, name):
    suffix, _, expected = REFUSED[name]
    page = f"page-{list(REFUSED).index(name)}.{suffix}"
    found = re.findall(rf"/{page}:\d+: WARNING: no translator can translate (.*)", output)
    assert any(text.startswith(expected) for text in found), found


def test_what_has_no_words_or_is_translatable_is_allowed(output):
    assert "allowed" not in output
