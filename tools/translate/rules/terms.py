"""Terms: they are translated as docs/glossary.csv says."""

import csv
import re
from dataclasses import dataclass
from functools import cache

from ...project.paths import DOCS
from .message import NAME_OF_CODE

GLOSSARY = DOCS / "glossary.csv"
# The note of a term that has its English in parentheses on each page, beside those whose
# translation has it there in the glossary.
BILINGUAL = "first use bilingual"
CODE_WORD = re.compile(r"[\w.]*(?:[/_]|::|(?<=\s)-)[\w./:-]*")


@dataclass(frozen=True)
class Term:
    english: str
    translation: dict
    avoided: dict
    pattern: re.Pattern
    explained: dict  # Per language, a pattern of the translation with the English behind it.


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
            {x: _explained(row, x) for x in languages},
        )
        for row in rows
    ]
    return sorted(terms, key=lambda term: -len(term.english))


def _accepted(translation):
    """저장소(store) is fine in full and as either half."""
    return [half for half in re.split(r"[(（）)]", translation) if half]


def _explained(row, language):
    """What a page must have where it first has the translation, or None."""
    native, *second = _accepted(row[language])
    english = [half for half in second if half.isascii()]  # Or else it is another word.
    if not english and BILINGUAL not in row["note"]:
        return None
    [english] = english or [row["term"]]
    return re.compile(rf"{re.escape(native)}(?:[*”]*\s?[(（][^)）]*{re.escape(english)})?", re.I)


def first_uses(messages):
    """Yield each message of a page that first has a term and lacks the English behind it.

    A term is one that the glossary has in both languages. Yields the message and a phrase.
    """
    for term in glossary():
        for message in messages:
            pattern = term.explained.get(message.language)
            found = pattern and pattern.search(message.prose)
            if found and term.pattern.search(message.source_prose):
                if not re.search("[(（]", found[0]):
                    yield message, f"lacks the English behind {found[0]!r}, on its first use here"
                break


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


def _is_name(term, message):
    """Whether a term is kept as a name, or to explain another word."""
    term = re.escape(term.removesuffix("s"))
    before = "(?<![A-Za-z])" if term[0].isupper() else "[(（]"
    return re.search(rf"{before}{term}(?![a-z])", message.prose)
