"""Words in Latin letters: names stay as they are, and English is not left standing."""

import re
from collections.abc import Iterator
from functools import cache

from ...project.languages import SOURCE_LANGUAGE
from ..names import whole
from .message import Message, differences
from .terms import glossary

SOURCE = SOURCE_LANGUAGE.gettext
IDENTIFIER = re.compile(
    r"--[a-z][\w-]+|(?u:(?<![\w-]))-[A-Za-z]\w*|"
    r"\b\w*[a-z0-9]_\w+|\b[A-Z]+_\w+|"
    r"(?<![\w/])(?:[\w.-]+/){2,}[\w.-]*\w|(?<![\w/])[\w.-]+/[\w-]+\.\w+|"
    r"\b[A-Z][a-z]+(?:[A-Z][a-z]*)+\b|\b\w+::\w+|\b[a-z]\w+\.[a-z]\w+\b",
    re.ASCII,
)
# With two capitals: an acronym, or the name of a product or a class.
NAME = re.compile(r"(?<![\w./-])(?:[A-Z]\w*[A-Z]\w*?|[a-z]+[A-Z]\w*)(?=s?(?![\w-]))", re.ASCII)
RUN = re.compile(r"[A-Za-z]*[a-z](?:[, ]+[a-z]+){2,}+(?![a-z]| ?[(（])")
# What has a digit, a capital within, or a mark within is a name or code; so is one letter.
WORD = re.compile(r"[A-Za-z](?:[\w.'-]*\w|[+]+)?", re.ASCII)
OF_CODE = re.compile(r"^.$|.[A-Z0-9_.+]")
# What the site, or the code below it, fills in.
FILLED_IN = re.compile(r"%\(\w+\)[sd]|\{\w*\}|\w+\(\)")
LATIN = "Latn"
# Names that look like words: of programs, of backends, of calls in tables, and gettext's "fuzzy".
NAMES = frozenset(
    "python intel gloo furo libfabric shm fake dummy true autocast dtype allgather wheel "
    "spawn fork forkserver split store wait fuzzy".split()
)
# Calls, and what only explains a word, before it or behind it.
ASIDE = re.compile(
    r"[A-Za-z]\w*\([ -~]*?\)|[A-Za-z ]+(?=[(（][^A-Za-z]+[)）])|[(（][^()（）]*[)）]"
)


def identifier(message: Message) -> Iterator[str]:
    """Report names of code, options, paths and products that differ, outside of literals."""
    # The plural of a name is the same name.
    names = (
        {x.removesuffix("s") for x in IDENTIFIER.findall(text)}
        for text in (message.source_prose, message.prose)
    )
    yield from differences("name", *names)
    for name in sorted(set(NAME.findall(message.source_prose))):
        if name not in message.translation:
            yield f"lacks the name {name!r}"


def english(message: Message) -> Iterator[str]:
    """Report English that was left standing, outside of parentheses."""
    script = whole(message.language)[1]
    if script != LATIN and not any(x.isalpha() and not x.isascii() for x in message.prose):
        if words := _words_of_prose(message):
            yield f"is English: {' '.join(words)!r}"
    elif message.language_rules.characters:
        for run in RUN.findall(ASIDE.sub(" ", message.prose)):
            if not _kept(message.language).issuperset(re.findall("[a-z]+", run)):
                yield f"has English left in it: {run!r}"
    elif message.language.partition("_")[0] != SOURCE:  # Other English may be the same.
        if message.translation == message.source and len(_words_of_prose(message)) > 1:
            yield "is the English text"


def _words_of_prose(message: Message) -> list[str]:
    """Return the words of a translation that are no names, no code, and no terms that stay."""
    kept = _kept(message.language) | NAMES
    return [
        word
        for word in WORD.findall(IDENTIFIER.sub(" ", FILLED_IN.sub(" ", message.prose)))
        if not OF_CODE.search(word) and word.lower().removesuffix("'s") not in kept
    ]


@cache
def _kept(language: str) -> frozenset[str]:
    """Return the words of the terms that stay English in a language."""
    return frozenset(
        word
        for term in glossary()
        if term.translation.get(language) == [term.english]
        for word in term.english.lower().split()
    )
