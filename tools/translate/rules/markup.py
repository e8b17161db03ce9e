"""Markup, links, placeholders and HTML: a translation has those of its source."""

import re
from collections.abc import Iterator
from functools import cache

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser, roles
from docutils.utils import new_document
from myst_parser.config.main import MdParserConfig
from myst_parser.mdit_to_docutils.base import DocutilsRenderer
from myst_parser.parsers.mdit import create_md_parser

from .message import HIDDEN_SPACE, LITERALS, ROLE, URL, Message, differences


def markup(message: Message) -> Iterator[str]:
    """Report literals, roles, links and emphasis that differ."""
    if message.format == "plain":
        yield from differences("literal", *map(LITERALS.findall, message.texts))
        return
    source, translation = (structure(x, message.format, message.source) for x in message.texts)
    if PROBLEM not in source:  # Otherwise it is of a listing or a diagram, without markup.
        yield from differences("markup", source, translation)


PROBLEM = "that cannot be understood"


def structure(text: str, format: str, source: str) -> list[str]:
    """Return the inline elements of a text and what they point to, as short phrases."""
    elements = _myst_structure(text) if format == "myst" else _rest_structure(text, source)
    return [" ".join(filter(None, parts)) for parts in elements]


@cache
def _markdown():
    options = MdParserConfig(enable_extensions={"colon_fence", "deflist"})
    return create_md_parser(options, DocutilsRenderer)


def _myst_structure(text: str) -> Iterator[tuple]:
    paragraphs = 0
    for block in _markdown().parse(text, {}):
        paragraphs += block.type == "paragraph_open"
        if block.type not in ("paragraph_open", "paragraph_close", "inline"):
            if block.nesting >= 0:
                yield "block", block.type
        for token in block.children or []:
            if token.type in ("text", "softbreak") or token.nesting < 0:
                continue
            target = token.attrs.get("href") or token.attrs.get("src") or token.content
            yield token.type.removesuffix("_open"), token.meta.get("name"), target
    yield from [("second paragraph",)] * (paragraphs - 1)


@cache
def _rest_settings():
    settings = get_default_settings(Parser)
    settings.report_level = 5
    settings.file_insertion_enabled = settings.raw_enabled = False
    return settings


def _role(name, rawtext, text, lineno, inliner, options=None, content=None):
    return [nodes.inline(rawtext, text, role=name)], []


def _rest_structure(text: str, source: str) -> Iterator[tuple]:
    for name in ROLE.findall(source):  # Sphinx knows them; docutils does not.
        roles.register_local_role(name, _role)
    document = new_document("message", _rest_settings())
    Parser().parse(text, document)
    for node in document.findall(nodes.Element):
        if isinstance(node, nodes.document | nodes.system_message):
            continue
        if isinstance(node, nodes.problematic):
            yield (PROBLEM,)
        elif isinstance(node, nodes.paragraph):
            if isinstance(node.parent, nodes.document) and node is not document[0]:
                yield ("second paragraph",)
        elif isinstance(node, nodes.inline):
            target = re.search(r"<([^<>]+)>$", node.astext())
            yield node.get("role"), target[1] if target else node.astext()
        elif isinstance(node, nodes.literal):
            yield "literal", node.astext()
        else:
            yield type(node).__name__, node.get("refuri")


# What is markup in one format or another.
SYMBOL = re.compile(r"[\\^|#@$={}\[\]<>*_+`]|~~|%%")
LIST_MARKER = re.compile(r"(?:\d+[.)]|[-+*>•]|#+)\s")
PLACEHOLDER = re.compile(r"%\(\w+\)[sdr]|%[sd]\b|\$\{\w+\}|(?<![$`{])\{\w*\}(?![`}])|%")
EMPTY_TEXT = re.compile(r"\[\s*\]\(|`\s*<")
HTML = re.compile(r"</?[A-Za-z][^<>`]*>(?!`)|&#?\w+;|\b(?:javascript|data|vbscript):(?=\S)")


def symbol(message: Message) -> Iterator[str]:
    """Report other characters than in the source that are markup in some format."""
    texts = list(message.texts)
    if message.format == "rest":
        texts = [HIDDEN_SPACE.sub("", text) for text in texts]
    bare = (PLACEHOLDER.sub("", text) for text in texts)
    yield from differences("character", *map(SYMBOL.findall, bare))
    yield from differences("link without a text", *map(EMPTY_TEXT.findall, texts))
    if LIST_MARKER.match(texts[1]) and not LIST_MARKER.match(texts[0]):
        yield "begins like an item of a list"


def link(message: Message) -> Iterator[str]:
    """Report addresses that differ."""
    yield from differences("address", *map(URL.findall, message.texts))


def placeholder(message: Message) -> Iterator[str]:
    """Report other ``%(name)s``, ``{}`` and ``${name}``, which the site fills in."""
    texts = list(message.texts)
    if "%(" not in message.source:  # Otherwise a % may not be alone.
        texts = [re.sub(r"%(?![(sd])", "", text) for text in texts]
    yield from differences("placeholder", *map(PLACEHOLDER.findall, texts))


def html(message: Message) -> Iterator[str]:
    """Report HTML tags and entities that differ, and addresses that run code."""
    yield from differences("HTML", *map(HTML.findall, message.texts))
