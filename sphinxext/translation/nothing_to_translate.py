"""Ask no translator for a text without words: a number, a path, a name in code.

A paragraph, heading, term or caption is a message of the catalog if it has a letter outside of
its literals and of paths. Otherwise it is the same in all languages.
"""

import re

from docutils import nodes
from docutils.transforms import Transform
from sphinx.application import Sphinx

PATH = re.compile(r"\S*/\S*\w\.\w+\b")


class NothingToTranslate(Transform):
    default_priority = 5  # Before Sphinx collects messages, at 10, and translates, at 20.

    def apply(self) -> None:
        for node in self.document.findall(nodes.TextElement):
            if isinstance(node, (nodes.paragraph, nodes.title, nodes.term, nodes.caption)):
                if not has_words(node):
                    node["translatable"] = False


def has_words(node: nodes.Element) -> bool:
    """Return whether a node has a letter outside of literals, of paths and of images."""
    texts = (text for text in node.findall(nodes.Text) if not _is_literal(text))
    return any(letter.isalpha() for text in texts for letter in PATH.sub("", text))


def _is_literal(text: nodes.Text) -> bool:
    """Return whether a text is code, or only the name of what is to be inserted."""
    return isinstance(text.parent, nodes.literal | nodes.substitution_reference)


def setup(app: Sphinx) -> dict:
    app.add_transform(NothingToTranslate)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
