"""Break text into lines, in scripts with and without spaces.

Words are kept whole, those of Chinese as a dictionary has them. No line begins with punctuation
that must not stand there. Korean has spaces and breaks at them only.
"""

import itertools
import re
import unicodedata

import rjieba

CJK = "\u3040-\u30ff\u3400-\u9fff"  # Without Hangul.
NOT_AT_THE_BEGINNING = "\u3001\u3002\u300b\u300d\u201d\uff01\uff09\uff0c\uff1a\uff1b\uff1f"
CHARACTER = re.compile(rf"[{CJK}]")
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
    for piece in _with_whole_words(words.findall(text)):
        if lines[-1] and measure(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece if lines[-1] else piece.lstrip()
    return [line.rstrip() for line in lines]


def _with_whole_words(pieces: list[str]) -> list[str]:
    """Join the characters of each Chinese word."""
    text = "".join(pieces)
    if not CHARACTER.search(text):
        return pieces
    ends = set(itertools.accumulate(map(len, rjieba.cut(text))))
    whole, position = [""], 0
    for piece in pieces:
        if position in ends or not CHARACTER.match(piece):
            whole.append("")
        whole[-1] += piece
        position += len(piece)
    return whole
