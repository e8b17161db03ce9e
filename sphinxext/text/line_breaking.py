"""Break text into lines, in scripts with and without spaces.

Words are kept whole; Chinese and Japanese break between characters, but not before
punctuation that must not begin a line. Korean has spaces and breaks at them only.
"""

import re
import unicodedata

CJK = "\u3040-\u30ff\u3400-\u9fff"  # Without Hangul.
NOT_AT_THE_BEGINNING = "\u3001\u3002\u300b\u300d\u201d\uff01\uff09\uff0c\uff1a\uff1b\uff1f"
UNBREAKABLE = re.compile(
    rf"[{CJK}][{NOT_AT_THE_BEGINNING}]*|[^\s{CJK}]+[{NOT_AT_THE_BEGINNING}]*|\s+"
)


def break_lines(
    text: str, width: float, *, narrow: float, wide: float, words: re.Pattern[str] = UNBREAKABLE
) -> list[str]:
    """Return ``text`` as lines of at most ``width``, longer only where one word is.

    ``narrow`` and ``wide`` are the widths of a Latin and of a CJK character. ``words``
    is a pattern of what is kept whole.
    """

    def measure(line: str) -> float:
        count = sum(unicodedata.east_asian_width(character) in "WF" for character in line)
        return wide * count + narrow * (len(line) - count)

    lines = [""]
    for piece in words.findall(text):
        if lines[-1] and measure(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece if lines[-1] else piece.lstrip()
    return [line.rstrip() for line in lines]
