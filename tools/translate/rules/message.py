"""The two texts that a rule compares, and what several rules need to read them."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from .language import language_rules

LITERAL = "\x00"  # What ``Message.prose`` has in the place of each literal.
# Marks that any East Asian language may use.
FULL_WIDTH = "\u3001\u3002\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
# Between markup and a letter, reStructuredText wants a space that is not shown.
HIDDEN_SPACE = re.compile(rf"(?<=[`*_])\\ |\\ (?=[`*:|])|\\(?=[{FULL_WIDTH}])")
# In a text without markup, where code would be literal, these must stay.
LITERALS = re.compile(r"``.+?``|(?<!`)`[^`\n]+`(?!`)", re.S)
URL = re.compile(r"\b[a-z][a-z+.-]*://[^\s<>()`]+[^\s<>()`.,;:]")
TEXT_AND_TARGET = re.compile(r"(?::[A-Za-z][\w:+.-]*:)?(?<!`)`([^`<]+?)\s*<[^<>`]+>`(?!`)_{0,2}")
ROLE = re.compile(r":([A-Za-z][\w:+.-]*):(?=`)")
# A sentence that begins with a small letter begins with a name.
NAME_OF_CODE = re.compile(r"(?<=[.!?]\s)[a-z]\w*")
SENTENCE_END = re.compile(r"[。？！]+|[.?!]+(?=[)）”\"’*]*(?:\s|$))")


@dataclass(frozen=True)
class Message:
    """One entry of a catalog. ``format`` is "rest", "myst", or "plain" for no markup.

    ``translated_elsewhere`` are English words that other entries translate.
    """

    source: str
    translation: str
    language: str
    format: str
    translated_elsewhere: frozenset = frozenset()

    @property
    def texts(self):
        return self.source, self.translation

    @property
    def language_rules(self):
        return language_rules(self.language)

    @cached_property
    def source_prose(self):
        return prose(self.source)

    @cached_property
    def prose(self):
        return prose(self.translation)


def prose(text):
    """A text without HTML, roles and link targets, and with LITERAL for each literal."""
    text = ROLE.sub("", TEXT_AND_TARGET.sub(r"\1", HIDDEN_SPACE.sub("", text)))
    text = LITERALS.sub(LITERAL, text)
    text = re.sub(r"(?<=\])\([^)]*\)|(?<=[\w\x00]) ?<[^>]+>`__?", "", text)
    text = re.sub(r"<[^>]+>", "", text)
    return URL.sub(LITERAL, text)


def shown(prose):
    """A part of a prose text as a finding quotes it."""
    return prose.replace(LITERAL, "``")


def final_mark(prose):
    """The punctuation mark that a text ends with, or ""."""
    return re.search(r"([.:;?!,。：；？！，、]?)[*_)）”\"’]*$", prose.strip())[1]


def count_sentences(prose):
    return len(SENTENCE_END.findall(prose))


def differences(what, source, translation):
    """Yield how two multisets differ."""
    for missing in sorted((Counter(source) - Counter(translation)).elements()):
        yield f"lacks the {what} {missing!r}"
    for added in sorted((Counter(translation) - Counter(source)).elements()):
        yield f"has the {what} {added!r}, which the source has not, or not as often"
