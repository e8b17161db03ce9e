"""Accept of a translation only what the source text has, too.

Translations come from many hands. This extension compares each translated node with
the source: the same roles, targets, links, literals and images, as often, in any order.
A translation with anything else, or with raw HTML, is refused with a warning, and the
source text stays. While translations are parsed, no directive can read a file or insert
raw output. Texts of templates may contain the HTML tags of their source only.
"""

import re
from collections import Counter

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.i18n import Locale
from sphinx.util import logging
from sphinx.util.nodes import extract_messages

logger = logging.getLogger(__name__)

# What tells one inline node of a class from another.
IDENTITY = ("reftype", "reftarget", "refuri", "refname", "uri", "format")
TAG = re.compile(r"<[^>]*>|[<>]")


def markup(node):
    """A multiset of the inline nodes in ``node``, with what they point to."""
    return Counter(
        (
            type(inner).__name__,
            *(inner.get(name) for name in IDENTITY),
            " ".join(inner.astext().split()) if _is_code(inner) else None,
        )
        for inner in node.findall(nodes.Element)
        if inner is not node
    )


def _is_code(node):
    """Whether the text of a node must stay. That of a link is translated."""
    if isinstance(node, nodes.literal):
        return not isinstance(node.parent, addnodes.pending_xref | addnodes.download_reference)
    return isinstance(node, nodes.raw)


class KeepSource(SphinxTransform):
    default_priority = Locale.default_priority - 1

    def apply(self, **kwargs):
        settings = self.document.settings
        self.document.settings_of_author = (
            settings.file_insertion_enabled,
            settings.raw_enabled,
        )
        settings.file_insertion_enabled = settings.raw_enabled = False
        for node, message in extract_messages(self.document):
            if isinstance(node, nodes.TextElement) and not isinstance(
                node, addnodes.translatable
            ):
                node.source_message = message
                node.source_markup = markup(node)
                node.source_children = [child.deepcopy() for child in node.children]


class RefuseUnfaithful(SphinxTransform):
    default_priority = Locale.default_priority + 1

    def apply(self, **kwargs):
        settings = self.document.settings
        settings.file_insertion_enabled, settings.raw_enabled = (
            self.document.settings_of_author
        )
        for node in list(self.document.findall(nodes.TextElement)):
            source = node.__dict__.pop("source_markup", None)
            if source is None or (translated := markup(node)) == source:
                continue
            node.children = []
            node += node.source_children
            logger.warning(
                "refused a translation whose markup is not that of its source, %r: "
                "it lacks %s, and adds %s",
                node.source_message,
                list(source - translated),
                list(translated - source),
                location=node,
            )


def guard(translate):
    """A gettext function whose translations have the HTML tags of their source."""

    def guarded(*messages):
        translated = translate(*messages)
        allowed = {tuple(sorted(TAG.findall(message))) for message in messages[:2]
                   if isinstance(message, str)}
        if tuple(sorted(TAG.findall(translated))) in allowed:
            return translated
        logger.warning("refused a translation with other HTML than %r", messages[0])
        return messages[0]

    return guarded


def guard_templates(app):
    templates = getattr(app.builder, "templates", None)
    if templates is not None and app.translator is not None:
        templates.environment.install_gettext_callables(
            guard(app.translator.gettext), guard(app.translator.ngettext)
        )


def setup(app):
    app.add_transform(KeepSource)
    app.add_transform(RefuseUnfaithful)
    app.connect("builder-inited", guard_templates)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
