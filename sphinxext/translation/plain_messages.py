"""Messages that are plain text: words in drawings, comments in listings.

Other extensions put nodes ``plain_message`` into a document. Each is a message of the
page's catalog; ``translations(nodes)`` is what to show. No markup is parsed in them; a
translation with other braces than its source is refused with a warning, since templates
may fill them in. So that tools can know which ones they are, the gettext builder also writes
``plain-messages.json``: for each page, its messages, and whether each is read as prose is, such
as the description of a drawing, or is a label or a comment.
"""

import json
import re
from collections.abc import Collection, Iterable
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging

from .faithful_translations import STRANGE

logger = logging.getLogger(__name__)
BRACES = re.compile(r"{[^{}]*}|[{}]")


def _unsafe(text: str) -> list[str]:
    return sorted(BRACES.findall(text) + STRANGE.findall(text))


class plain_message(nodes.raw, addnodes.translatable):
    # Raw, because Sphinx parses the translations of most nodes as reStructuredText, even if
    # the node applies them itself, and would warn of backticks that are no markup.

    def preserve_original_messages(self) -> None:
        self["message"] = self.astext()

    def extract_original_messages(self) -> list[str]:
        return [self["message"]]

    def apply_translated_message(self, original_message: str, translated_message: str) -> None:
        if _unsafe(original_message) != _unsafe(translated_message):
            logger.warning(
                "refused a translation with other braces or control characters than %r",
                original_message,
                location=self,
            )
            return
        self.clear()
        self += nodes.Text(translated_message)
        self["translated"] = True  # Sphinx notes it of its own nodes only.


def plain_messages(
    texts: Iterable[str], source: nodes.Element, prose: Collection[str] = ()
) -> list[plain_message]:
    """Return a node for each different text; ``source`` is the node that holds them.

    ``prose`` are those of the texts that are read as prose is.
    """
    messages = [plain_message("", "", nodes.Text(text)) for text in dict.fromkeys(texts)]
    for message in messages:
        message["prose"] = message.astext() in prose
        message.source, message.line = source.source, source.line
    return messages


def translations(messages: Iterable[Any]) -> dict[str, str]:
    """Return a dictionary from message to translation, or to the message itself."""
    return {message["message"]: message.astext() for message in messages}


def collect(app: Sphinx, doctree: nodes.document) -> None:
    messages = list(doctree.findall(plain_message))
    prose = {message["message"] for message in messages if message["prose"]}
    texts = sorted({message["message"] for message in messages})
    app.env.metadata[app.env.docname]["plain_messages"] = {x: x in prose for x in texts}


def write(app: Sphinx, exception: Exception | None) -> None:
    if app.builder.name == "gettext" and not exception:
        pages = {
            page: app.env.metadata[page]["plain_messages"] for page in sorted(app.env.found_docs)
        }
        (app.outdir / "plain-messages.json").write_text(json.dumps(pages, indent=1))


def setup(app: Sphinx) -> dict:
    app.add_node(plain_message)
    app.connect("doctree-read", collect)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
