"""Words in Latin letters: names stay as they are, and English is not left standing."""

import re
from collections.abc import Iterator
from functools import cache

from ...project.languages import SOURCE_LANGUAGE
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
    if message.language_rules.characters:
        for run in RUN.findall(ASIDE.sub(" ", message.prose)):
            if not _kept(message.language).issuperset(re.findall("[a-z]+", run)):
                yield f"has English left in it: {run!r}"
    elif message.language.partition("_")[0] != SOURCE:  # Other English may be the same.
        if message.translation == message.source and message.source_prose.count(" ") > 2:
            yield "is the English text"


@cache
def _kept(language: str) -> frozenset[str]:
    """Return the words of the terms that stay English in a language."""
    return frozenset(
        word
        for term in glossary()
        if term.translation.get(language) == [term.english]
        for word in term.english.lower().split()
    )
