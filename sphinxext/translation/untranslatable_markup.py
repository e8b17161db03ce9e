"""Refuse in the source language what no translator could translate.

Words in raw HTML belong to no message, and translations may contain no raw HTML. So a page must
have no words in raw HTML, and no raw HTML, no line break and no image among the words of a
paragraph. Text that a substitution inserts belongs to no message, either. For each of them there
is a warning that names the place and what to write instead.
"""

import re
from html import unescape

from docutils import nodes
from docutils.transforms import Transform
from sphinx.application import Sphinx
from sphinx.util import logging

from .nothing_to_translate import has_words

logger = logging.getLogger(__name__)

BREAK = re.compile(r"<br\b", re.I)
COMMENT = re.compile(r"<!--.*?-->", re.S)
NO_TEXT = re.compile(r"<(script|style)\b.*?</\1\s*>", re.S | re.I)
SPOKEN = re.compile(r"""\b(?:alt|title|placeholder|aria-[\w-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s>]+)""")
TAG = re.compile(r"<[^>]*>")


class RefuseUntranslatable(Transform):
    default_priority = 8  # Before messages are collected, at 10, and translated, at 20.

    def apply(self) -> None:
        for node in self.document.findall(nodes.raw):
            if type(node) is nodes.raw and "html" in node["format"].split():
                self.check_raw(node)
        for image in self.document.findall(nodes.image):
            around = _text_around(image)
            if around and has_words(around):
                _refuse(image, "an image among words: give it a paragraph of its own")
        for inserted in self.document.findall(nodes.substitution_definition):
            if has_words(inserted):
                _refuse(inserted, "a substitution with words: write them where they are shown")

    def check_raw(self, node: nodes.raw) -> None:
        html, is_among_words = node.astext(), _text_around(node) is not None
        if is_among_words and BREAK.search(html):
            _refuse(node, "a line break among words: begin a paragraph, an item or a row instead")
        elif is_among_words or _has_words(html):
            _refuse(
                node,
                f"raw HTML, {html.strip()!r}: write it as the other text of the page; the "
                "directive `admonition` with the option `collapsible` folds text",
            )


def _text_around(node: nodes.Element) -> nodes.Element | None:
    """Return the paragraph, heading, cell or the like that holds a node, or None."""
    parent = node.parent
    while isinstance(parent, nodes.Inline):  # A link, or emphasis.
        parent = parent.parent
    return parent if isinstance(parent, nodes.TextElement) else None


def _has_words(html: str) -> bool:
    shown = NO_TEXT.sub("", COMMENT.sub("", html))
    spoken = "".join(SPOKEN.findall(shown))
    return any(letter.isalpha() for letter in unescape(TAG.sub("", shown) + spoken))


def _refuse(node: nodes.Element, what: str) -> None:
    place = node
    while place.line is None and place.parent is not None:
        place = place.parent
    logger.warning("no translator can translate %s", what, location=place)


def setup(app: Sphinx) -> dict:
    app.add_transform(RefuseUntranslatable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
