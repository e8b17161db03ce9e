"""Numbers in digits."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest

from babel.core import UnknownLocaleError
from babel.numbers import get_decimal_symbol

from .message import Message, differences

NUMBER = re.compile(r"(?:(?<![\w.)])-)?(?<![\w.])\d+(?:[.,]\d+)*(?![A-Za-z])", re.ASCII)
WORDS = "zeros? ones? two three four five six seven eight nine ten".split()
# A month that the source names, and many languages number; "may" is a verb.
MONTHS = (
    "January February March April May June July August September October November December"
).split()
NUMBER_WORDS = {
    "100": re.compile(r"\bhundred\b", re.I),
    "0.5": re.compile(r"\bhalf\b", re.I),
    **{
        str(value): re.compile(rf"\b(?:{'|'.join(x for x in words if x)})\b")
        for value, words in enumerate(
            zip_longest((f"(?i:{x})" for x in WORDS), ["", *MONTHS], fillvalue="")
        )
    },
}


def number(message: Message) -> Iterator[str]:
    """Digits, outside of literals. A number or a month that the source spells out may be digits."""
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
    yield from differences("number", source.elements(), translation.elements())


@cache
def _has_decimal_comma(language: str) -> bool:
    try:
        return get_decimal_symbol(language) == ","
    except (UnknownLocaleError, ValueError):
        return False
