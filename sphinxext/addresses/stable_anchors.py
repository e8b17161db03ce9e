"""Keep the anchors of headings the same in every language.

Sphinx gives a translated heading an anchor made from the translation, in front of
the one made from the source text. Links into a page then break as soon as the
reader changes the language, and a heading in a script that has no Latin letters
gets an anchor such as ``id3``, which changes when a heading is inserted above it.

This extension records each section's ids before Sphinx translates the document, and
restores them afterwards.
"""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.i18n import Locale


class RememberIds(SphinxTransform):
    default_priority = Locale.default_priority - 1

    def apply(self, **kwargs: Any) -> None:
        for section in self.document.findall(nodes.section):
            section["source-language-ids"] = list(section["ids"])


class RestoreIds(SphinxTransform):
    default_priority = Locale.default_priority + 1

    def apply(self, **kwargs: Any) -> None:
        for section in self.document.findall(nodes.section):
            section["ids"] = section.attributes.pop("source-language-ids")


def setup(app: Sphinx) -> dict:
    app.add_transform(RememberIds)
    app.add_transform(RestoreIds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
