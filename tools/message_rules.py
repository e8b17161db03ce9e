"""What a translation must have in common with its source text, rule by rule.

Each rule is a function that yields what it found, as a phrase for a translator. It gets
``Message``: the two texts, and the language. ``RULES`` holds them by name.
"""

import csv
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser, roles
from docutils.utils import new_document
from myst_parser.config.main import MdParserConfig
from myst_parser.mdit_to_docutils.base import DocutilsRenderer
from myst_parser.parsers.mdit import create_md_parser

from .paths import DOCS

GLOSSARY = DOCS / "glossary.csv"
HAN = "\u4e00-\u9fff"
HANGUL = "\uac00-\ud7a3"
FULL_WIDTH = "\u3001\u3002\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
# In a text without markup, where code would be literal, these are what has to stay.
LITERALS = re.compile(r"``.+?``|(?<!`)`[^`\n]+`(?!`)", re.S)
URL = re.compile(r"\b[a-z][a-z+.-]*://[^\s<>()`]+[^\s<>()`.,;:]")
ROLE = re.compile(r":([A-Za-z][\w:+.-]*):(?=`)")


@dataclass(frozen=True)
class Message:
    """One entry of a catalog. ``format`` is "rest", "myst", or "plain" for no markup."""

    source: str
    translation: str
    language: str
    format: str

    @cached_property
    def source_prose(self):
        return prose(self.source)

    @cached_property
    def prose(self):
        return prose(self.translation)


def prose(text):
    """A text without HTML and link targets, and with a mark for each literal."""
    text = LITERALS.sub("\x00", text)
    text = re.sub(r"(?<=\])\([^)]*\)|(?<=[\w\x00]) ?<[^>]+>`__?", "", text)
    text = re.sub(r"<[^>]+>", "", text)
    return URL.sub("\x00", text)


def _differences(what, source, translation):
    """Yield how two multisets differ."""
    for missing in sorted((Counter(source) - Counter(translation)).elements()):
        yield f"lacks the {what} {missing!r}"
    for added in sorted((Counter(translation) - Counter(source)).elements()):
        yield f"has the {what} {added!r}, which the source has not, or not as often"


# -- Markup ----------------------------------------------------------------------


def markup(message):
    """The same literals, roles, links and emphasis; nothing else."""
    if message.format == "plain":
        texts = (LITERALS.findall(x) for x in (message.source, message.translation))
        yield from _differences("literal", *texts)
        return
    source = structure(message.source, message.format, message.source)
    if PROBLEM in source:  # A text of a listing or a diagram: it has no markup.
        return
    yield from _differences(
        "markup", source, structure(message.translation, message.format, message.source)
    )


PROBLEM = "that cannot be understood"


def structure(text, format, source):
    """The inline elements of a text and what they point to, as short phrases."""
    found = _myst_structure(text) if format == "myst" else _rest_structure(text, source)
    return [" ".join(filter(None, parts)) for parts in found]


@cache
def _markdown():
    options = MdParserConfig(enable_extensions={"colon_fence", "deflist"})
    return create_md_parser(options, DocutilsRenderer)


def _myst_structure(text):
    paragraphs = 0
    for block in _markdown().parse(text, {}):
        paragraphs += block.type == "paragraph_open"
        if block.type not in ("paragraph_open", "paragraph_close", "inline"):
            if block.nesting >= 0:
                yield "block", block.type
        for token in block.children or []:
            if token.type in ("text", "softbreak") or token.nesting < 0:
                continue
            target = token.attrs.get("href") or token.attrs.get("src")
            yield token.type.removesuffix("_open"), token.meta.get("name"), target or token.content
    yield from [("second paragraph",)] * (paragraphs - 1)


@cache
def _rest_settings():
    settings = get_default_settings(Parser)
    settings.report_level = 5
    settings.file_insertion_enabled = settings.raw_enabled = False
    return settings


def _role(name, rawtext, text, lineno, inliner, options=None, content=None):
    return [nodes.inline(rawtext, text, role=name)], []


def _rest_structure(text, source):
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
            target = node.get("refuri") or node.get("refname")
            yield type(node).__name__, target if node.get("refuri") else None


# -- What is the same in every language ------------------------------------------


NUMBER_WORDS = dict(
    zip("zeros? ones? two three four five six seven eight nine ten".split(), range(11))
) | {"hundred": 100}


def number(message):
    """Digits, outside of literals. A number that the source spells out may be digits."""
    pattern = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?![A-Za-z])", re.ASCII)
    source = Counter(pattern.findall(message.source_prose))
    translation = Counter(pattern.findall(message.prose))
    for word, value in NUMBER_WORDS.items():
        spelled = len(re.findall(rf"\b{word}\b", message.source_prose, re.I))
        extra = translation[str(value)] - source[str(value)]
        translation[str(value)] -= max(0, min(spelled, extra))
    yield from _differences("number", source, translation)


def identifier(message):
    """Names of code, options and paths that stand outside of literals."""
    pattern = re.compile(
        r"--[a-z][\w-]+|\b\w*[a-z0-9]_\w+|\b[A-Z]+_\w+|(?<![\w/])(?:[\w.-]+/){2,}[\w.-]*\w|"
        r"(?<![\w/])[\w.-]+/[\w-]+\.\w+|"
        r"\b[A-Z][a-z]+(?:[A-Z][a-z]*)+\b|\b\w+::\w+|\b[a-z]\w+\.[a-z]\w+\b",
        re.ASCII,
    )
    source, translation = (
        set(pattern.findall(text)) for text in (message.source_prose, message.prose)
    )
    yield from _differences("name", source, translation)


def link(message):
    """Addresses: none may change."""
    yield from _differences(
        "address", URL.findall(message.source), URL.findall(message.translation)
    )


def placeholder(message):
    """``%(name)s``, ``{}`` and ``${name}``, which the site fills in."""
    pattern = re.compile(r"%\(\w+\)[sdr]|%[sd]\b|\$\{\w+\}|(?<![\w$`{])\{\w*\}(?![`{])")
    yield from _differences(
        "placeholder", pattern.findall(message.source), pattern.findall(message.translation)
    )


def html(message):
    """HTML tags and entities."""
    pattern = re.compile(r"</?[A-Za-z][^<>`]*>(?!`)|&#?\w+;|\b(?:javascript|data|vbscript):(?=\S)")
    yield from _differences(
        "HTML", pattern.findall(message.source), pattern.findall(message.translation)
    )


# -- What makes good text --------------------------------------------------------


def invisible(message):
    """Control characters and characters without width."""
    for character in message.translation:
        if unicodedata.category(character) in ("Cc", "Cf", "Co") and character != "\n":
            yield f"has the invisible character U+{ord(character):04X}"


def english(message):
    """English that was left standing."""
    if message.translation == message.source:
        if re.search(r"\b[a-z]{2,}[,:]? [a-z]{2,}\b", message.source_prose):
            yield "is the English text"
    else:
        for run in re.findall(r"(?:\b[a-z]+ ){4,}[a-z]+\b", message.prose):
            yield f"has English left in it: {run!r}"


def doubled(message):
    """A word twice in a row."""
    if message.language == "zh_CN":
        pattern = r"(的的|了了|是是|在在|和和|与与|为为|个个个|不不)"
    else:
        pattern = rf"(?<![{HANGUL}\w])([{HANGUL}A-Za-z]{{2,}}) \1(?![{HANGUL}\w])"
    for found in re.finditer(pattern, message.prose):
        yield f"says {found[1]!r} twice in a row"


def spacing(message):
    """Punctuation and spaces as the language writes them."""
    text = message.prose.replace("\n", " ")
    if "  " in text.strip() and "  " not in message.source_prose:
        yield "has two spaces in a row"
    for side in (str.lstrip, str.rstrip):
        ends = [x.removeprefix(side(x)).removesuffix(side(x)) for x in
                (message.source, message.translation)]  # fmt: skip
        if ends[0] != ends[1]:
            yield f"begins or ends with {ends[1]!r}, the source with {ends[0]!r}"
    if message.language == "ko":
        for found in re.findall(f"[{FULL_WIDTH}]", text):
            yield f"has the punctuation mark {found!r} of Chinese"
        for found in re.findall(rf"[{HANGUL}] [,.;:!?](?=\s|$)", text):
            yield f"has a space before the punctuation mark in {found!r}"
    if message.language == "zh_CN":
        for found in re.findall(rf"[{HAN}][,;:!?](?![A-Za-z0-9])|[{HAN}]\.(?=\s|$)|[{HAN}] ?\(", text):
            yield f"has a punctuation mark of half width in {found!r}"
        for found in re.findall(rf"[{HAN}][A-Za-z0-9\x00]|[A-Za-z0-9\x00][{HAN}]", text):
            shown = found.replace("\x00", "``")
            yield f"lacks a space between the scripts in {shown!r}"
        for found in re.findall(rf"[{HAN}] [{HAN}]|[{FULL_WIDTH}] (?=[^*_])|[{HAN}] [{FULL_WIDTH}]", text):
            yield f"has a space too many in {found!r}"


def traditional(message):
    """Traditional characters in simplified Chinese: GB 2312 has none of them."""
    if message.language == "zh_CN":
        for character in sorted(set(re.findall(f"[{HAN}]", message.translation))):
            try:
                character.encode("gb2312")
            except UnicodeEncodeError:
                yield f"has the traditional or rare character {character!r}"


def speech_level(message):
    """One speech level in Korean: sentences end in 합니다-style."""
    if message.language == "ko":
        text = re.sub(r"\([^)]*\)", "", message.prose)
        for found in re.findall(rf"[{HANGUL}]+(?=[.?!](?:\s|$))", text):
            if re.search("(?:[^니]다|[^필중주수개소]요|[^니]까)$", found):
                yield f"ends a sentence with {found!r}, not in 합니다-style"


# -- Terms -----------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    english: str
    translation: dict
    avoided: dict
    pattern: re.Pattern


@cache
def glossary():
    """The terms, the longest first: "process group" is not a "process"."""
    with open(GLOSSARY, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    languages = [name.removeprefix("avoid_") for name in rows[0] if name.startswith("avoid_")]
    terms = [
        Term(
            row["term"],
            {x: _accepted(row[x], row["term"]) for x in languages},
            {x: [y for y in row[f"avoid_{x}"].split("|") if y] for x in languages},
            re.compile(rf"\b{re.escape(row['term'])}(?:s|es)?\b(?![-_])", re.I),
        )
        for row in rows
    ]
    return sorted(terms, key=lambda term: -len(term.english))


def _accepted(translation, english):
    """저장소(store) is fine in full and as either half."""
    halves = re.split(r"[(（）)]", translation)
    return [half for half in halves if half] + [english]


def glossary_term(message):
    """Terms of the glossary are translated as it says."""
    text = message.source_prose
    for term in glossary():
        if not term.pattern.search(text):
            continue
        text = term.pattern.sub("\x01", text)
        accepted = term.translation.get(message.language, [])
        for avoided in term.avoided.get(message.language, []):
            if avoided in message.prose and not any(avoided in x for x in accepted):
                yield f"says {avoided!r} for {term.english!r}; the glossary has {accepted[0]!r}"
        if accepted and not any(x.lower() in message.translation.lower() for x in accepted):
            yield f"lacks {accepted[0]!r}, the glossary's word for {term.english!r}"


RULES = {
    rule.__name__.replace("_", "-"): rule
    for rule in (
        markup,
        number,
        identifier,
        link,
        placeholder,
        html,
        invisible,
        english,
        doubled,
        spacing,
        traditional,
        speech_level,
        glossary_term,
    )
}
