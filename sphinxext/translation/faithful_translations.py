"""Refuse translations whose markup differs from the source.

Translations come from many hands. This extension compares each translated node with
the source: the same roles, targets, links, literals and images, as often, in any order.
A translation with anything else, or with raw HTML, is refused with a warning, and the
source text stays. While translations are parsed, no directive runs, no file is read and no
raw output is inserted. Texts of templates and of Sphinx itself may contain the HTML tags,
quotation marks, placeholders and line breaks of their source only. Characters that are not
seen, or that turn the direction of text, are refused everywhere.
"""

import re
from collections import Counter
from gettext import NullTranslations
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes, locale
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.i18n import Locale
from sphinx.util import logging
from sphinx.util.nodes import extract_messages

logger = logging.getLogger(__name__)

# What tells one inline node of a class from another.
IDENTITY = ("reftype", "reftarget", "refuri", "refname", "uri", "format")
TAG = re.compile(r"<[^>]*>|[<>]")
TAG_NAME = re.compile(r"<(/?)(\w+)")
# Control characters, those that turn the direction of text, and those that nobody sees. Not
# the joiners and the marks of direction that scripts need.
STRANGE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff"
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffd\ue000-\uf8ff\U000e0000-\U0010ffff]"
)
FILLED = re.compile(r"%(?:\(\w*\))?.?")


def markup(node: nodes.Element) -> Counter[Any]:
    """Return a multiset of the inline nodes in ``node``, with what they point to."""
    return Counter(
        (
            type(inner).__name__,
            *(inner.get(name) for name in IDENTITY),
            " ".join(inner.astext().split()) if _is_code(inner) else None,
        )
        for inner in node.findall(nodes.Element)
        if inner is not node
    )


def strange_characters(node: nodes.Element) -> set[str]:
    """Return those in the text of a node, and in what its inner nodes say, such as titles."""
    texts = [node.astext()]
    for inner in node.findall(nodes.Element):
        for value in inner.attributes.values():
            texts += map(str, value if isinstance(value, list) else [value])
    return set(STRANGE.findall("".join(texts)))


# What translators call the nodes of docutils.
NAMES = {"literal": "code", "reference": "link", "pending_xref": "link", "raw": "HTML"}


def _in_words(found: Counter[Any]) -> str:
    """Return what ``markup`` and ``strange_characters`` found, as a translator reads it."""
    words = []
    for item in found.elements():
        if isinstance(item, str):
            words.append(f"the character U+{ord(item):04X}")
        else:
            name, *details = item
            shown = dict.fromkeys(repr(x) for x in details if x)
            words.append(" ".join([NAMES.get(name, name.replace("_", " ")), *shown]))
    return ", ".join(words) or "nothing"


def _is_code(node: nodes.Element) -> bool:
    """Return whether the text of a node must stay. That of a link is translated."""
    if isinstance(node, nodes.literal):
        return not isinstance(node.parent, addnodes.pending_xref | addnodes.download_reference)
    return isinstance(node, nodes.raw)


def _no_directive(
    name: str, language_module: Any, document: nodes.document
) -> tuple[None, list[nodes.system_message]]:
    return None, []


class KeepSource(SphinxTransform):
    default_priority = Locale.default_priority - 1

    def apply(self, **kwargs: Any) -> None:
        settings = self.document.settings
        self.document.settings_of_author = (
            settings.file_insertion_enabled,
            settings.raw_enabled,
        )
        settings.file_insertion_enabled = settings.raw_enabled = False
        self.document.directives_of_author = directives.directive
        directives.directive = _no_directive
        for node, message in extract_messages(self.document):
            if isinstance(node, nodes.TextElement) and not isinstance(node, addnodes.translatable):
                node.source_message = message
                node.source_markup = markup(node)
                node.source_children = [child.deepcopy() for child in node.children]


class RefuseUnfaithful(SphinxTransform):
    default_priority = Locale.default_priority + 1

    def apply(self, **kwargs: Any) -> None:
        settings = self.document.settings
        settings.file_insertion_enabled, settings.raw_enabled = self.document.settings_of_author
        directives.directive = self.document.__dict__.pop("directives_of_author")
        for node in list(self.document.findall(nodes.TextElement)):
            source = node.__dict__.pop("source_markup", None)
            if source is None:
                continue
            translated = markup(node)
            strange = strange_characters(node) - set(node.source_message)
            if translated == source and not strange:
                continue
            translated.update(strange)
            node.children = []
            node += node.source_children
            logger.warning(
                "refused a translation whose markup is not that of its source, %r: "
                "it lacks %s, and adds %s",
                node.source_message,
                _in_words(source - translated),
                _in_words(translated - source),
                location=node,
            )


class Guarded:
    """Translations of Sphinx and of templates, which come without any parsing."""

    def __init__(self, translator: NullTranslations) -> None:
        self.translator = translator

    def gettext(self, message: str) -> str:
        return self._faithful(self.translator.gettext(message), message)

    def ngettext(self, singular: str, plural: str, number: int) -> str:
        translated = self.translator.ngettext(singular, plural, number)
        return self._faithful(translated, singular, plural)

    def _faithful(self, translated: str, *sources: str) -> str:
        if any(is_as_harmless(translated, source) for source in sources):
            return translated
        logger.warning(
            "refused a translation with other HTML or placeholders than %r",
            sources[0],
            once=True,
        )
        return sources[0]


def is_as_harmless(translated: str, source: str) -> bool:
    """Return whether a translation has the tags, quotes and placeholders of its source."""
    return (
        sorted(TAG.findall(translated)) == sorted(TAG.findall(source))
        and (_is_nested(translated) or not _is_nested(source))
        and not set(STRANGE.findall(translated)) - set(source)
        and translated.count("\n") <= source.count("\n")
        and TAG.sub("", translated).count('"') <= TAG.sub("", source).count('"')
        and ("%(" not in source or set(FILLED.findall(translated)) == set(FILLED.findall(source)))
    )


def _is_nested(text: str) -> bool:
    """Return whether each tag is closed where it should be."""
    is_open = []
    for closes, name in TAG_NAME.findall(text):
        if not closes:
            is_open.append(name)
        elif not is_open or is_open.pop() != name:
            return False
    return not is_open


def guard_messages(app: Sphinx) -> None:
    if app.translator is None:
        return
    app.translator = Guarded(app.translator)  # type: ignore[assignment]  # It has what is used.
    locale.translators["general", "sphinx"] = app.translator
    templates = getattr(app.builder, "templates", None)
    if templates is not None:
        templates.environment.install_gettext_translations(app.translator)


def setup(app: Sphinx) -> dict:
    app.add_transform(KeepSource)
    app.add_transform(RefuseUnfaithful)
    app.connect("builder-inited", guard_messages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
