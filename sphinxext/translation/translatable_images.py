"""Offer the alternative text of each image to translators, as a message of its own.

Sphinx's own way has two faults: it marks a translated text as one in the source language, and it
reads the text as markup. Here it is plain text, as the words of drawings are.
"""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.i18n import Locale, PreserveTranslatableMessages
from sphinx.util.nodes import get_node_line, get_node_source

from .plain_messages import plain_messages


class image_message(nodes.Invisible, nodes.Element):
    """The message of the image before it; gone before anything is written."""


class OfferAlternatives(SphinxTransform):
    default_priority = PreserveTranslatableMessages.default_priority - 1

    def apply(self, **kwargs: Any) -> None:
        for image in list(self.document.findall(nodes.image)):
            if text := image.attributes.pop("alt", ""):  # Or else it is a message of Sphinx.
                image.source, image.line = get_node_source(image), get_node_line(image)
                message = image_message("", *plain_messages([text], image, prose=[text]))
                image.parent.insert(image.parent.index(image) + 1, message)


class TranslateAlternatives(SphinxTransform):
    default_priority = Locale.default_priority + 1

    def apply(self, **kwargs: Any) -> None:
        if self.app.builder.name == "gettext":
            return  # It comes later, to collect the messages.
        for message in list(self.document.findall(image_message)):
            image: Any = message.parent[message.parent.index(message) - 1]
            [text] = message.children
            image["alt"] = text.astext()
            if "translated" in text:
                image["translated"] = text["translated"]
            message.parent.remove(message)


def setup(app: Sphinx) -> dict:
    app.setup_extension("sphinxext.translation.plain_messages")
    app.add_node(image_message)
    app.add_transform(OfferAlternatives)
    app.add_transform(TranslateAlternatives)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
