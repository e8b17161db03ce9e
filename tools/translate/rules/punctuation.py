"""Characters, spaces and punctuation marks."""

import re
import unicodedata
from collections.abc import Iterator

from .message import FULL_WIDTH, Message, quoted

DOUBLED_MARK = re.compile(r"[,;:，。、；：！](?=\s*[.,;:，。、；：])|[。？]{2}|(?<!\.)\.\.(?!\.)")

# Arabic, Persian and the scripts of India need these between letters.
JOINERS = "\u200c\u200d"
# Marks combine with the letter before them. (``\\w`` does not match all of them.)
LONE_MARK = re.compile(r"(?:^|[\s!-@\[-`{-~])[^\w\s!-~]")
KEPT = FULL_WIDTH + "…\u0e33\u0eb3"  # The last two are letters of Thai and Lao.


def character(message: Message) -> Iterator[str]:
    """Report characters that the language does not use, are not seen, or look like others."""
    own = message.language_rules.characters
    for x in dict.fromkeys(message.translation):
        if x in message.source or " " <= x <= "~":
            continue
        category = unicodedata.category(x)
        if not own and (category[0] == "M" or x in JOINERS):
            continue  # See below.
        if category[0] in "CZ" or category in ("Mn", "Me") or x == "\ufffd":
            yield f"has the invisible or broken character U+{ord(x):04X}"
        elif unicodedata.normalize("NFKC", x) != x and x not in KEPT:
            yield f"has {x!r} (U+{ord(x):04X}) in the place of a usual character"
        elif own and not re.match(f"[{own}]", x):
            yield f"has the character {x!r} (U+{ord(x):04X}), which is foreign here"
    if not own:
        for pair in LONE_MARK.findall(message.translation):
            if unicodedata.category(pair[-1])[0] == "M" or pair[-1] in JOINERS:
                yield f"has the mark U+{ord(pair[-1]):04X} without a letter before it"
        if len(unicodedata.normalize("NFC", message.translation)) < len(message.translation):
            yield "has a letter and its mark as two characters (use the form NFC)"


def spacing(message: Message) -> Iterator[str]:
    """Report spaces and line ends that the language does not write so."""
    text = message.prose.replace("\n", " ")
    if "  " in text.strip() and "  " not in message.source_prose:
        yield "has two spaces in a row"
    if "\n" in message.translation.strip() and "\n" not in message.source.strip():
        yield "has a line end, which the source has not"
    for source, translation in zip(*map(_margins, message.texts), strict=True):
        if source != translation:
            yield f"begins or ends with {translation!r}, the source with {source!r}"
    if pattern := message.language_rules.spacing:
        for match in re.finditer(pattern, text):
            yield f"lacks a space or has one too many in {quoted(match[0])}"


def _margins(text: str) -> tuple[str, str]:
    return text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]


def punctuation(message: Message) -> Iterator[str]:
    """Report a mark twice, and one without its other half."""
    text = message.prose.replace("\n", " ")
    for mark in DOUBLED_MARK.findall(text):
        is_quoted = mark in FULL_WIDTH and mark in message.source  # It speaks of it.
        if mark + mark not in message.source and not is_quoted:
            yield f"has two punctuation marks in a row, after {mark!r}"
    if "..." in text and "..." not in message.source:
        yield "has '...'; write '…' where the source does"
    for pair in ("()", "（）", "“”", "[]", "《》"):
        if not _is_balanced(text, pair) and _is_balanced(message.source_prose, pair):
            yield f"has one of {pair!r} without the other"
    if text.count('"') > message.source_prose.count('"'):
        yield "has a quotation mark that the source has not"
    if re.search('[“"]', message.source_prose) and not re.search("[“”\"‘’'«»‹›„‚《「『*]", text):
        yield "lacks the quotation marks"


def _is_balanced(text: str, pair: str) -> bool:
    depth = 0
    for x in text:
        depth += (x == pair[0]) - (x == pair[1])
        if depth < 0:
            return False
    return depth == 0


def ending(message: Message) -> Iterator[str]:
    """Report a mark at the end that does not go with that of the source."""
    source, translation = _final_mark(message.source_prose), _final_mark(message.prose)
    if translation not in message.language_rules.endings.get(source, [translation]):
        yield f"ends with {translation!r}, where the source ends with {source!r}"


def _final_mark(prose: str) -> str:
    match = re.search(r"([.:;?!,。：；？！，、])[*_)）”\"’]*$", prose.strip())
    return match[1] if match else ""
