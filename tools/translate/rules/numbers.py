"""Numbers and their units, in digits and in words."""

import re
from collections import Counter
from functools import cache

from babel.core import UnknownLocaleError
from babel.numbers import get_decimal_symbol

from .message import differences

NUMBER = re.compile(r"(?:(?<![\w.)])-)?(?<![\w.])\d+(?:[.,]\d+)*(?![A-Za-z])", re.ASCII)
NUMBER_WORDS = {
    str(value): re.compile(rf"\b{word}\b", re.I)
    for value, word in [
        *enumerate("zeros? ones? two three four five six seven eight nine ten".split()),
        (100, "hundred"),
    ]
}
# Numbers in words, from three on. A language has its own.
SPELLED = dict(
    enumerate(
        "three|third four|fourth|quarters? five|fifth six|sixth seven|seventh eight|eighth "
        "nine|ninth".split(),
        start=3,
    )
)
# One and two are often no numbers. So they are only compared with each other: what says them,
# and all that may be translated with them.
ONE = r"(?<!without )\bone (?=[a-z])|\bsingle\b"
TWO = r"\btwo\b|\btwice\b"
SAYS_ONE = r"\b(?:ones?|once|single|first|an?|each|every|only|same|another|any|alone)\b|1"
SAYS_TWO = (
    r"\b(?:two|both|twice|second|pairs?|double|halves|half|either|neither|couple|latter|former|"
    r"between|sides?)\b|2"
)
# Units of the source. A language has its own, by these names.
UNITS = {
    "millisecond": r"ms\b|milli",
    "second": r"s\b|sec",
    "minute": "min|hour",
    "hour": r"hour|h\b",
    "byte": "byte",
    "bit": "bit",
}


def number(message):
    """Digits, outside of literals. A number that the source spells out may be digits."""
    source = Counter(NUMBER.findall(message.source_prose))
    translation = Counter(NUMBER.findall(message.prose))
    for value in NUMBER_WORDS.keys() & translation.keys():
        spelled = len(NUMBER_WORDS[value].findall(message.source_prose))
        extra = translation[value] - source[value]
        translation[value] -= max(0, min(spelled, extra))
    if _has_decimal_comma(message.language):
        for value in translation - source:
            swapped = value.translate(str.maketrans(".,", ",."))
            if source[swapped] > translation[swapped]:
                translation[swapped] += translation.pop(value)
    yield from differences("number", source, translation)
    yield from _spelled_numbers(message)
    yield from _one_for_two(message)
    yield from _units(message)


@cache
def _has_decimal_comma(language):
    try:
        return get_decimal_symbol(language) == ","
    except (UnknownLocaleError, ValueError):
        return False


def _spelled_numbers(message):
    for value, native in message.language_rules.numbers.items():
        if value not in SPELLED:
            continue
        english = rf"\b(?:{SPELLED[value]})\b(?!-party)"
        in_source = re.search(english, message.source_prose, re.I)
        in_translation = re.search(native, message.prose)
        if in_translation and not in_source and str(value) not in message.source:
            yield f"has the number {in_translation[0]!r}, which the source has not"
        if in_source and not in_translation and str(value) not in message.translation:
            yield f"lacks the number {in_source[0]!r}"


def _one_for_two(message):
    """One where the source has two, or the other way round."""
    rules = message.language_rules
    kinds = ((ONE, rules.one, 2, SAYS_TWO), (TWO, rules.two, 1, SAYS_ONE))
    for english, native, other, says_other in kinds:
        if not rules.numbers or not re.search(english, message.source_prose, re.I):
            continue
        found = re.search(rules.numbers[other], message.prose)
        if found and not re.search(native, message.prose):
            if not re.search(says_other, message.source_prose, re.I):
                yield f"has the number {found[0]!r}, which the source has not"


def _units(message):
    """Units of another kind than the source has. The source may have none."""
    units = message.language_rules.units
    in_source = {
        x for x in units if re.search(rf"(?<![A-Za-z])(?:{UNITS[x]})", message.source_prose)
    }
    for name, native in units.items() if in_source else ():
        numerals = "|".join(filter(None, (r"\d", message.language_rules.numerals)))
        found = re.search(rf"(?:{numerals}) ?({native})", message.prose)
        if found and name not in in_source:
            yield f"has the unit {found[1]!r}, which the source has not"
