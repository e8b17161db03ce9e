"""Words in Latin letters: names stay as they are, and English is not left standing."""

import re
from collections import Counter
from functools import cache

from ...project.languages import SOURCE_LANGUAGE
from .markup import PLACEHOLDER
from .message import LITERALS, NAME_OF_CODE, differences
from .terms import glossary

SOURCE = SOURCE_LANGUAGE.gettext
IDENTIFIER = re.compile(
    r"--[a-z][\w-]+|(?u:(?<![\w-]))-[A-Za-z]\w*|"
    r"\b\w*[a-z0-9]_\w+|\b[A-Z]+_\w+|"
    r"(?<![\w/])(?:[\w.-]+/){2,}[\w.-]*\w|(?<![\w/])[\w.-]+/[\w-]+\.\w+|"
    r"\b[A-Z][a-z]+(?:[A-Z][a-z]*)+\b|\b\w+::\w+|\b[a-z]\w+\.[a-z]\w+\b",
    re.ASCII,
)
LOWER_WORD = re.compile(r"(?<![\w./:'\"-])[a-z]{2,}(?![\w/:'\"=(-]|\.\w)", re.ASCII)
RUN = re.compile(r"[A-Za-z]*[a-z](?:[, ]+[a-z]+){2,}+(?![a-z]| ?[(（])")
TITLE = re.compile(r"(?:[A-Z]\w+ (?:(?:the|of|on|and|for) )*)+[A-Z]\w+", re.ASCII)
WORD = re.compile(r"[A-Za-z]+\d*")
# With two capitals: an acronym, or the name of a product or a class.
NAME = re.compile(r"(?<![\w./-])(?:[A-Z]\w*[A-Z]\w*?|[a-z]+[A-Z]\w*)(?=s?(?![\w-]))", re.ASCII)
# Calls, and what only explains a word, before it or behind it.
ASIDE = re.compile(
    r"[A-Za-z]\w*\([ -~]*?\)|[A-Za-z ]+(?=[(（][^A-Za-z]+[)）])|[(（][^()（）]*[)）]"
)
# Words that are no names anywhere.
FUNCTION_WORDS = frozenset(
    "an the of and or but to in into with for from that this these those it its is are was "
    "were be been has have had will would can could may must should which who when while "
    "then than not only also each every some any at by because however if so there here "
    "they them their we you our your see before other same all".split()
)


def identifier(message):
    """Names of code, options and paths outside of literals."""
    yield from differences(
        "name", *(set(IDENTIFIER.findall(x)) for x in (message.source_prose, message.prose))
    )


def english(message):
    """English that was left standing, outside of parentheses."""
    if not message.language_rules.characters:  # It may be a language in Latin letters.
        if message.language.partition("_")[0] == SOURCE:
            return  # Other English may be the same.
        if message.translation == message.source and message.source_prose.count(" ") > 2:
            yield "is the English text"
        return
    prose = TITLE.sub("", ASIDE.sub(" ", message.prose))
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


@cache
def _kept(language):
    """Words of the terms that stay English in a language."""
    return frozenset(
        word
        for term in glossary()
        if term.translation.get(language) == [term.english]
        for word in term.english.lower().split()
    )


def word_counts(messages):
    """How many messages have each English word, and how many leave it standing."""
    found, left = Counter(), Counter()
    for message in messages:
        words = set(LOWER_WORD.findall(message.source_prose))
        found.update(words)
        left.update(words.intersection(LOWER_WORD.findall(ASIDE.sub(" ", message.prose))))
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
    """The words in the literals of texts. They may be anywhere on their page."""
    literals = (literal for message in messages for literal in LITERALS.findall(message.source))
    return frozenset(word for literal in literals for word in WORD.findall(literal))


def word(message):
    """Words in Latin letters are words of the source."""
    if not message.language_rules.characters:
        return
    known = {form for found in WORD.findall(message.source) for form in _forms(found)}
    for found in dict.fromkeys(WORD.findall(PLACEHOLDER.sub("", message.prose))):
        if found not in known and found not in _english_terms():
            yield f"has the word {found!r}, which the source has not"
    for name in sorted(set(NAME.findall(message.source_prose))):
        if name not in message.translation:
            yield f"lacks the name {name!r}"


def _forms(found):
    """A word of the source as it may be elsewhere: without its ending, and not first."""
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
