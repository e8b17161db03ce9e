"""The two texts that a rule compares, and what several rules need to read them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from .language import LanguageRules, language_rules

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


@dataclass(frozen=True)
class Message:
    """One entry of a catalog. ``format`` is "rest", "myst", or "plain" for no markup."""

    source: str
    translation: str
    language: str
    format: str
    line: int = 0

    @property
    def texts(self) -> tuple[str, str]:
        return self.source, self.translation

    @property
    def language_rules(self) -> LanguageRules:
        return language_rules(self.language)

    @cached_property
    def source_prose(self) -> str:
        return prose(self.source)

    @cached_property
    def prose(self) -> str:
        return prose(self.translation)


def prose(text: str) -> str:
    """Return a text without HTML, roles and link targets, and with LITERAL for each literal."""
    text = ROLE.sub("", TEXT_AND_TARGET.sub(r"\1", HIDDEN_SPACE.sub("", text)))
    text = LITERALS.sub(LITERAL, text)
    text = re.sub(r"(?<=\])\([^)]*\)|(?<=[\w\x00]) ?<[^>]+>`__?", "", text)
    text = re.sub(r"<[^>]+>", "", text)
    return URL.sub(LITERAL, text)


def quoted(prose: str) -> str:
    """Return a part of a prose text as a finding quotes it."""
    return repr(prose.replace(LITERAL, "``"))


def differences(what: str, source: Iterable[str], translation: Iterable[str]) -> Iterator[str]:
    """Yield how two multisets differ."""
    before, after = Counter(source), Counter(translation)
    for missing in sorted((before - after).elements()):
        yield f"lacks the {what} {missing!r}"
    for added in sorted((after - before).elements()):
        yield f"has the {what} {added!r}, which the source has not, or not as often"
