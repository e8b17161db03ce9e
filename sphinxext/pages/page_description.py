"""Describe each page in its own words, for search engines and previews of links.

Templates receive ``description``: the beginning of the page's first paragraph, as plain
text in the language of the page. It ends with a whole sentence if one ends in the second
half of the width, and otherwise with a word and an ellipsis.
"""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from ..text.line_breaking import break_lines

# In columns. A CJK character takes two, because it says about twice as much.
WIDTH = 155
END_OF_SENTENCE = re.compile(r"[.!?](?=\s|$)|[。！？]")


def describe(text: str, width: float) -> str:
    """Return the beginning of ``text``, at most ``width`` columns of it."""
    text = " ".join(text.split())
    first, *rest = break_lines(text, width, narrow=1, wide=2)
    if not rest and not first.endswith((":", "：")):  # A colon announces text that is left out.
        return first
    ends = [match.end() for match in END_OF_SENTENCE.finditer(first)]
    if ends and 2 * ends[-1] > len(first):
        return first[: ends[-1]]
    return break_lines(text, width - 1, narrow=1, wide=2)[0].rstrip(",;:，；：、") + "…"


def add_description(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: Any
) -> None:
    for paragraph in doctree.findall(nodes.paragraph) if doctree is not None else []:
        if isinstance(paragraph.parent, nodes.section):
            context["description"] = describe(paragraph.astext(), WIDTH)
            return


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", add_description)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
