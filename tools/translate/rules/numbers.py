"""Numbers in digits."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

from babel.core import UnknownLocaleError
from babel.numbers import get_decimal_symbol

from .message import Message, differences

NUMBER = re.compile(r"(?:(?<![\w.)])-)?(?<![\w.])\d+(?:[.,]\d+)*(?![A-Za-z])", re.ASCII)
NUMBER_WORDS = [
    *enumerate("zeros? ones? two three four five six seven eight nine ten".split()),
    *((100, "hundred"), (0.5, "half")),
]
# Many languages number the months.
MONTHS = (
    "January February March April May June July August September October November December"
).split()
# What the source may say in place of digits. "may" is a verb.
SPELLED = [(str(value), re.compile(rf"\b{word}\b", re.I)) for value, word in NUMBER_WORDS]
SPELLED += [(str(value), re.compile(rf"\b{month}\b")) for value, month in enumerate(MONTHS, 1)]


def number(message: Message) -> Iterator[str]:
    """Digits, outside of literals. A number or a month that the source spells out may be digits."""
    source = Counter(NUMBER.findall(message.source_prose))
    translation = Counter(NUMBER.findall(message.prose))
    for value, word in SPELLED:
        spelled = len(word.findall(message.source_prose))
        extra = translation[value] - source[value]
        translation[value] -= max(0, min(spelled, extra))
    if _has_decimal_comma(message.language):
        for value in translation - source:
            swapped = value.translate(str.maketrans(".,", ",."))
            if source[swapped] > translation[swapped]:
                translation[swapped] += translation.pop(value)
    yield from differences("number", source.elements(), translation.elements())


@cache
def _has_decimal_comma(language: str) -> bool:
    try:
        return get_decimal_symbol(language) == ","
    except (UnknownLocaleError, ValueError):
        return False
