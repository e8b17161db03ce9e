"""Ask no translator for a paragraph without words: a number, a path, a name in code.

A paragraph is a message of the catalog if it has a letter outside of its literals.
Otherwise it is the same in all languages.
"""

from docutils import nodes
from docutils.transforms import Transform


class NothingToTranslate(Transform):
    default_priority = 5  # Before Sphinx collects messages, at 10, and translates, at 20.

    def apply(self):
        for node in self.document.findall(nodes.TextElement):
            if isinstance(node, (nodes.paragraph, nodes.title, nodes.term)):
                if not _has_words(node):
                    node["translatable"] = False


def _has_words(node):
    if any(node.findall(nodes.image)):
        return True  # It may have an alternative text.
    texts = (text for text in node.findall(nodes.Text) if not _is_literal(text))
    return any(letter.isalpha() for text in texts for letter in text)


def _is_literal(text):
    return isinstance(text.parent, nodes.literal)


def setup(app):
    app.add_transform(NothingToTranslate)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
