"""Terms: they are translated as docs/glossary.csv says."""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from ...project.paths import DOCS
from .message import Message

GLOSSARY = DOCS / "glossary.csv"
# The note of a term that has its English in parentheses on each page, beside those whose
# translation has it there in the glossary.
BILINGUAL = "first use bilingual"
# Names: words of code, and a sentence that begins with a small letter.
CODE_WORD = re.compile(r"[\w.]*(?:[/_]|::|(?<=\s)-)[\w./:-]*|(?<=[.!?]\s)[a-z]\w*")


@dataclass(frozen=True)
class Term:
    """A row of the glossary. Each dictionary has an item for each language that has a word for it.

    ``explained`` are patterns of the translation with the English behind it; None for a term
    that needs no English.
    """

    english: str
    pattern: re.Pattern[str]
    translation: dict[str, list[str]]
    avoided: dict[str, list[str]]
    explained: dict[str, re.Pattern[str] | None]


@cache
def glossary() -> list[Term]:
    """Return the terms, the longest first: "process group" is not a "process"."""
    with open(GLOSSARY, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    languages = [name.removeprefix("avoid_") for name in rows[0] if name.startswith("avoid_")]
    terms = [_term(row, [x for x in languages if row[x]]) for row in rows]
    return sorted(terms, key=lambda term: -len(term.english))


def _term(row: dict[str, str], languages: list[str]) -> Term:
    return Term(
        row["term"],
        re.compile(rf"\b{re.escape(row['term'])}(?:s|es)?\b(?![-_])", re.I),
        {x: _accepted(row[x]) for x in languages},
        {x: [y for y in row[f"avoid_{x}"].split("|") if y] for x in languages},
        {x: _explained(row, x) for x in languages},
    )


def _accepted(translation: str) -> list[str]:
    """Return the forms of a translation: either half of 저장소(store) is fine."""
    return [half for half in re.split(r"[(（）)]", translation) if half]


def _explained(row: dict[str, str], language: str) -> re.Pattern[str] | None:
    native, *second = _accepted(row[language])
    english = [half for half in second if half.isascii()]  # Or else it is another word.
    if not english and BILINGUAL not in row["note"]:
        return None
    [gloss] = english or [row["term"]]
    return re.compile(rf"{re.escape(native)}(?:[*”]*\s?[(（][^)）]*{re.escape(gloss)})?", re.I)


def first_uses(messages: Iterable[Message]) -> Iterator[tuple[Message, str]]:
    """Yield each message of a page that first has a term and lacks the English behind it.

    A term is one that the glossary has in both languages. Yields the message and a phrase.
    """
    for term in glossary():
        for message in messages:
            pattern = term.explained.get(message.language)
            match = pattern and pattern.search(message.prose)
            if match and term.pattern.search(message.source_prose):
                if not re.search("[(（]", match[0]):
                    yield message, f"lacks the English behind {match[0]!r}, on its first use here"
                break


def glosses(title: Message) -> Iterator[str]:
    """Report terms whose English stands behind them in the title of a page."""
    for term in glossary():
        pattern = term.explained.get(title.language)
        match = pattern and pattern.search(title.prose)
        if match and re.search("[(（]", match[0]):
            yield f"{match[0]!r} has the English behind it; a title stands in the menu without it"


def glossary_term(message: Message) -> Iterator[str]:
    """Report terms of the glossary that are not translated as it says."""
    text = CODE_WORD.sub("", message.source_prose)
    for term in glossary():
        match = term.pattern.search(text)
        if not match or message.language not in term.translation:
            continue
        text = term.pattern.sub("\x01", text)
        accepted = term.translation[message.language]
        for avoided in term.avoided[message.language]:
            if avoided in message.prose and not any(avoided in x for x in accepted):
                yield f"says {avoided!r} for {term.english!r}; the glossary has {accepted[0]!r}"
        if not any(
            x in message.translation or x.lower() in message.translation for x in accepted
        ) and not _is_name(match[0], message):
            yield f"lacks {accepted[0]!r}, the glossary's word for {term.english!r}"


def _is_name(term: str, message: Message) -> bool:
    """Return whether a term is kept as a name, or to explain another word."""
    term = re.escape(term.removesuffix("s"))
    before = "(?<![A-Za-z])" if term[0].isupper() else "[(（]"
    return re.search(rf"{before}{term}(?![a-z])", message.prose) is not None
