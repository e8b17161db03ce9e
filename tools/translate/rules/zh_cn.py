"""Simplified Chinese."""

import re
from collections.abc import Iterator

from .language import LanguageRules
from .message import FULL_WIDTH, LITERAL, Message, quoted

HAN = "\u4e00-\u9fff"
CALL = re.compile(r"\w\([ -~]*?\)")  # Code that is not marked as such.


def character(message: Message) -> Iterator[str]:
    """Report characters that are not among the simplified ones of GB 2312."""
    for x in dict.fromkeys(re.findall(f"[{HAN}]", message.translation)):
        if x not in message.source and not x.encode("gb2312", "ignore"):
            yield f"has the traditional or rare character {x!r}"


def punctuation(message: Message) -> Iterator[str]:
    """Report marks of half width beside Chinese."""
    text = CALL.sub("x", message.prose.replace("\n", " "))
    source = CALL.sub("x", " ".join(message.source_prose.split()))
    near = rf"[{HAN}{FULL_WIDTH}”{LITERAL}]"
    pattern = rf"{near}[*]*[.](?=\s|$|{near})|\.\s*{near}|{near}\s*[()]|[()]\s*{near}"
    marks = re.findall(pattern, text)
    marks += [x for x in re.findall(r"\S?\s*[,;:!?]\s*\S?", text) if x.rstrip() not in source]
    for mark in marks:
        yield f"has a punctuation mark of half width in {quoted(mark)}"
    if match := re.search(rf'"[^"]*[{HAN}][^"]*"', text):
        yield f"has straight quotation marks in {quoted(match[0])}"


def speech_level(message: Message) -> Iterator[str]:
    """Report a polite address: the reader is 你."""
    if "您" in message.prose:
        yield "has '您': this site says 你"


RULES = LanguageRules(
    characters=f"{HAN}{FULL_WIDTH}“”‘’《》…—·",
    spacing=(
        rf"[{HAN}][A-Za-z0-9{LITERAL}]|[A-Za-z0-9{LITERAL}][{HAN}]|[{HAN}] [{HAN}]|"
        rf"[{FULL_WIDTH}] (?=[^*_])| [{FULL_WIDTH}]"
    ),
    endings={
        ".": ["。"],
        ":": ["："],
        "?": ["？"],
        "!": ["！", "。"],
        ";": ["；", "。"],
        ",": ["，", ",", "、"],
        "": ["", "："],
    },
    # What is usual is well within.
    lengths=((160, 0.48, 1.1), (80, 0.42, 1.2), (40, 0.36, 1.35), (15, 0.28, 2.6), (1, 0.2, 4)),
    rules=(character, punctuation, speech_level),
)
