"""What a translation must have in common with its source text, rule by rule.

Each rule is a function that yields what it found, as a phrase for a translator. It gets
``Message``: the two texts, and the language. ``RULES`` holds them by name, with those
of ``prose_rules``, which look at the language alone.
"""

import csv
import re
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

from ..project.paths import DOCS
from .prose_rules import CHARACTERS, HIDDEN_SPACE, LITERAL, PROSE_RULES

GLOSSARY = DOCS / "glossary.csv"
# In a text without markup, where code would be literal, these are what has to stay.
LITERALS = re.compile(r"``.+?``|(?<!`)`[^`\n]+`(?!`)", re.S)
URL = re.compile(r"\b[a-z][a-z+.-]*://[^\s<>()`]+[^\s<>()`.,;:]")
TEXT_AND_TARGET = re.compile(r"(?::[A-Za-z][\w:+.-]*:)?(?<!`)`([^`<]+?)\s*<[^<>`]+>`(?!`)_{0,2}")
ROLE = re.compile(r":([A-Za-z][\w:+.-]*):(?=`)")


@dataclass(frozen=True)
class Message:
    """One entry of a catalog. ``format`` is "rest", "myst", or "plain" for no markup.

    ``translated_elsewhere`` are English words that other entries do not leave standing.
    """

    source: str
    translation: str
    language: str
    format: str
    translated_elsewhere: frozenset = frozenset()

    @cached_property
    def source_prose(self):
        return prose(self.source)

    @cached_property
    def prose(self):
        return prose(self.translation)


def prose(text):
    """A text without HTML, roles and link targets, and with a mark for each literal."""
    text = ROLE.sub("", TEXT_AND_TARGET.sub(r"\1", HIDDEN_SPACE.sub("", text)))
    text = LITERALS.sub(LITERAL, text)
    text = re.sub(r"(?<=\])\([^)]*\)|(?<=[\w\x00]) ?<[^>]+>`__?", "", text)
    text = re.sub(r"<[^>]+>", "", text)
    return URL.sub(LITERAL, text)


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
            yield (
                token.type.removesuffix("_open"),
                token.meta.get("name"),
                target or token.content,
            )
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


# What is markup in one language or another.
SYMBOL = re.compile(r"[\\^|#@$={}\[\]<>*_+`]|~~|%%")
LIST_MARKER = re.compile(r"(?:\d+[.)]|[-+*>•]|#+)\s")
PLACEHOLDER = re.compile(r"%\(\w+\)[sdr]|%[sd]\b|\$\{\w+\}|(?<![$`{])\{\w*\}(?![`}])|%")
EMPTY_TEXT = re.compile(r"\[\s*\]\(|`\s*<")


def symbol(message):
    """Characters that are markup somewhere are as many as in the source."""
    texts = [
        HIDDEN_SPACE.sub("", x) if message.format == "rest" else x
        for x in (message.source, message.translation)
    ]
    bare = (PLACEHOLDER.sub("", text) for text in texts)
    yield from _differences("character", *map(SYMBOL.findall, bare))
    yield from _differences("link without a text", *map(EMPTY_TEXT.findall, texts))
    if LIST_MARKER.match(texts[1]) and not LIST_MARKER.match(texts[0]):
        yield "begins like an item of a list"


# -- What is the same in every language ------------------------------------------


NUMBER = re.compile(r"(?:(?<![\w.)])-)?(?<![\w.])\d+(?:[.,]\d+)*(?![A-Za-z])", re.ASCII)
NUMBER_WORDS = {
    str(value): re.compile(rf"\b{word}\b", re.I)
    for value, word in [
        *enumerate("zeros? ones? two three four five six seven eight nine ten".split()),
        (100, "hundred"),
    ]
}
# Of the numbers that are written in words, those that no language uses idly.
SPELLED = {
    "en": {
        3: "three|third",
        4: "four|fourth|quarters?",
        5: "five|fifth",
        6: "six|sixth",
        7: "seven|seventh",
        8: "eight|eighth",
        9: "nine|ninth",
    },
    "ko": {3: "세|셋", 4: "네|넷", 5: "다섯", 6: "여섯", 7: "일곱", 8: "여덟", 9: "아홉"},
    "zh_CN": {3: "三", 4: "四", 5: "五", 6: "六", 7: "七", 8: "八", 9: "九"},
}
NATIVE_NUMBER = {
    "ko": r"(?<![가-힣])(?:%s)(?=[ 을를이가은는의개번째도로과와,.)]|$)",
    "zh_CN": r"(?:%s)(?![方角周十百千元])",
}
UNITS = {  # after a digit, and what it has to be in the source
    "ko": {
        "초": r"s\b|sec",
        "분(?!의)": "min|hour",
        "시간": r"hour|h\b",
        "바이트": "byte",
        "비트": "bit",
    },
    "zh_CN": {
        "毫秒": r"ms\b|milli",
        "秒": r"s\b|sec",
        "分钟": "min|hour",
        "小时": r"hour|h\b",
        "字节": "byte",
        "位(?!置)": "bit",
    },
}


def number(message):
    """Digits, outside of literals. A number that the source spells out may be digits."""
    source = Counter(NUMBER.findall(message.source_prose))
    translation = Counter(NUMBER.findall(message.prose))
    for value in NUMBER_WORDS.keys() & translation.keys():
        spelled = len(NUMBER_WORDS[value].findall(message.source_prose))
        extra = translation[value] - source[value]
        translation[value] -= max(0, min(spelled, extra))
    yield from _differences("number", source, translation)
    yield from _spelled_numbers(message)
    yield from _units(message)


def _units(message):
    """Units of another kind than the source has. It may be that it has none."""
    units = UNITS.get(message.language, {})
    in_source = {
        unit
        for unit, english in units.items()
        if re.search(rf"(?<![A-Za-z])(?:{english})", message.source_prose)
    }
    for unit in sorted(units.keys() - in_source) if in_source else ():
        if found := re.search(rf"\d ?({unit})", message.prose):
            yield f"has the unit {found[1]!r}, which the source has not"


def _spelled_numbers(message):
    for value, words in SPELLED.get(message.language, {}).items():
        english = rf"\b(?:{SPELLED['en'][value]})\b(?!-party)"
        native = NATIVE_NUMBER[message.language] % words
        in_source = re.search(english, message.source_prose, re.I)
        in_translation = re.search(native, message.prose)
        if in_translation and not in_source and str(value) not in message.source:
            yield f"has the number {in_translation[0]!r}, which the source has not"
        if in_source and not in_translation and str(value) not in message.translation:
            yield f"lacks the number {in_source[0]!r}"


IDENTIFIER = re.compile(
    r"--[a-z][\w-]+|(?<![\w가-힣一-鿿-])-[A-Za-z]\w*|"
    r"\b\w*[a-z0-9]_\w+|\b[A-Z]+_\w+|"
    r"(?<![\w/])(?:[\w.-]+/){2,}[\w.-]*\w|(?<![\w/])[\w.-]+/[\w-]+\.\w+|"
    r"\b[A-Z][a-z]+(?:[A-Z][a-z]*)+\b|\b\w+::\w+|\b[a-z]\w+\.[a-z]\w+\b",
    re.ASCII,
)


def identifier(message):
    """Names of code, options and paths that stand outside of literals."""
    source, translation = (
        set(IDENTIFIER.findall(text)) for text in (message.source_prose, message.prose)
    )
    yield from _differences("name", source, translation)


def link(message):
    """Addresses: none may change."""
    yield from _differences(
        "address", URL.findall(message.source), URL.findall(message.translation)
    )


def placeholder(message):
    """``%(name)s``, ``{}`` and ``${name}``, which the site fills in."""
    texts = (message.source, message.translation)
    if "%(" not in message.source:  # Otherwise no % may stand alone.
        texts = (re.sub(r"%(?![(sd])", "", text) for text in texts)
    yield from _differences("placeholder", *map(PLACEHOLDER.findall, texts))


def html(message):
    """HTML tags and entities."""
    pattern = re.compile(r"</?[A-Za-z][^<>`]*>(?!`)|&#?\w+;|\b(?:javascript|data|vbscript):(?=\S)")
    yield from _differences(
        "HTML", pattern.findall(message.source), pattern.findall(message.translation)
    )


# -- English that was left standing ----------------------------------------------

LOWER_WORD = re.compile(r"(?<![\w./:'\"-])[a-z]{2,}(?![\w/:'\"=(-]|\.\w)", re.ASCII)
RUN = re.compile(r"[A-Za-z]*[a-z](?:[, ]+[a-z]+){2,}+(?![a-z]| ?[(（])")
TITLE = re.compile(r"(?:[A-Z]\w+ (?:(?:the|of|on|and|for) )*)+[A-Z]\w+", re.ASCII)
# A sentence that begins with a small letter begins with a name.
NAME_OF_CODE = re.compile(r"(?<=[.!?]\s)[a-z]\w*")
# Words that are no names anywhere.
FUNCTION_WORDS = frozenset(
    "an the of and or but to in into with for from that this these those it its is are was "
    "were be been has have had will would can could may must should which who when while "
    "then than not only also each every some any at by because however if so there here "
    "they them their we you your our see before other same all".split()
)


def english(message):
    """English that was left standing, outside of parentheses."""
    if message.language not in CHARACTERS:  # It may be one in Latin letters.
        if message.translation == message.source and message.source_prose.count(" ") > 2:
            yield "is the English text"
        return
    prose = TITLE.sub("", _outside_parentheses(message.prose))
    kept = _kept(message.language).union(NAME_OF_CODE.findall(message.source_prose))
    if message.translation == message.source:
        for found in re.findall(r"(?<![\w./-])[A-Za-z][a-z]+(?![\w./-])", prose):
            if found.lower() not in kept:
                yield f"is the English text: {found!r}"
        return
    for run in RUN.findall(prose):
        if not kept.issuperset(re.findall("[a-z]+", run)):
            yield f"has English left in it: {run!r}"
    for found in sorted(set(LOWER_WORD.findall(prose)) - kept):
        if found in FUNCTION_WORDS or found in message.translated_elsewhere:
            yield f"leaves the word {found!r} in English"


def _outside_parentheses(prose):
    """A text without calls, and without what only explains a word, before or behind it."""
    call, before, within = (
        r"[A-Za-z]\w*\([ -~]*?\)",
        r"[A-Za-z ]+(?=[(（][^A-Za-z]+[)）])",
        r"[(（][^()（）]*[)）]",
    )
    return re.sub(f"{call}|{before}|{within}", " ", prose)


def word_counts(messages):
    """How many messages have each English word, and how many leave it standing."""
    found, left = Counter(), Counter()
    for message in messages:
        words = set(LOWER_WORD.findall(message.source_prose))
        found.update(words)
        left.update(words.intersection(LOWER_WORD.findall(_outside_parentheses(message.prose))))
    return found, left


def translated_words(counts):
    """English words that the translations hardly ever leave standing.

    ``counts`` are those of ``word_counts``, of all catalogs.
    """
    found, left = Counter(), Counter()
    for found_here, left_here in counts:
        found.update(found_here)
        left.update(left_here)
    return frozenset(word for word in found if found[word] > 3 and left[word] <= found[word] / 4)


def code_words(messages):
    """The words in the literals of texts. They may stand anywhere on their page."""
    literals = (literal for message in messages for literal in LITERALS.findall(message.source))
    return frozenset(word for literal in literals for word in WORD.findall(literal))


WORD = re.compile(r"[A-Za-z]+\d*")
# With two capitals: an acronym, or the name of a product or a class.
NAME = re.compile(r"(?<![\w./-])(?:[A-Z]\w*[A-Z]\w*?|[a-z]+[A-Z]\w*)(?=s?(?![\w-]))", re.ASCII)


def word(message):
    """Words in Latin letters are words of the source."""
    if message.language not in CHARACTERS:
        return
    known = {form for found in WORD.findall(message.source) for form in _forms(found)}
    for found in dict.fromkeys(WORD.findall(PLACEHOLDER.sub("", message.prose))):
        if found not in known and found not in _english_terms():
            yield f"has the word {found!r}, which the source has not"
    for name in sorted(set(NAME.findall(message.source_prose))):
        if name not in message.translation:
            yield f"lacks the name {name!r}"


def _forms(found):
    """A word of the source as it may stand elsewhere: alone, and not first."""
    endings = [found.removesuffix(x) for x in ("s", "es", "d", "ed", "ing", "ly")]
    endings += [found.removesuffix("ing") + "e", found.removesuffix("ies") + "y"]
    for form in (found, *endings):
        yield form
        if form[1:].islower() or len(form) == 1:
            yield from (form.lower(), form.capitalize())
        if len(form) < 4:
            yield form.upper()


@cache
def _english_terms():
    return {found for term in glossary() for found in WORD.findall(term.english)}


@cache
def _kept(language):
    """Words of the terms that stand in English in a language, too."""
    return frozenset(
        word
        for term in glossary()
        if term.translation.get(language) == [term.english]
        for word in term.english.lower().split()
    )


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
            {x: _accepted(row[x]) for x in languages},
            {x: [y for y in row[f"avoid_{x}"].split("|") if y] for x in languages},
            re.compile(rf"\b{re.escape(row['term'])}(?:s|es)?\b(?![-_])", re.I),
        )
        for row in rows
    ]
    return sorted(terms, key=lambda term: -len(term.english))


def _accepted(translation):
    """저장소(store) is fine in full and as either half."""
    return [half for half in re.split(r"[(（）)]", translation) if half]


def glossary_term(message):
    """Terms of the glossary are translated as it says."""
    text = NAME_OF_CODE.sub("", CODE_WORD.sub("", message.source_prose))
    for term in glossary():
        found = term.pattern.search(text)
        if not found or message.language not in term.translation:
            continue
        text = term.pattern.sub("\x01", text)
        accepted = term.translation[message.language]
        for avoided in term.avoided[message.language]:
            if avoided in message.prose and not any(avoided in x for x in accepted):
                yield f"says {avoided!r} for {term.english!r}; the glossary has {accepted[0]!r}"
        if not any(
            x in message.translation or x.lower() in message.translation for x in accepted
        ) and not _is_name(found[0], message):
            yield f"lacks {accepted[0]!r}, the glossary's word for {term.english!r}"


CODE_WORD = re.compile(r"[\w.]*(?:[/_]|::|(?<=\s)-)[\w./:-]*")


def _is_name(term, message):
    """Whether a term is kept as a name, or to explain another word."""
    term = re.escape(term.removesuffix("s"))
    before = "(?<![A-Za-z])" if term[0].isupper() else "[(（]"
    return re.search(rf"{before}{term}(?![a-z])", message.prose)


RULES = {
    rule.__name__.replace("_", "-"): rule
    for rule in (
        markup,
        symbol,
        number,
        identifier,
        link,
        placeholder,
        html,
        english,
        word,
        glossary_term,
        *PROSE_RULES,
    )
}
