"""Characters, spaces and punctuation marks."""

import re
import unicodedata

from .message import FULL_WIDTH, final_mark, shown

DOUBLED_MARK = re.compile(r"[,;:，。、；：！](?=\s*[.,;:，。、；：])|[。？]{2}|(?<!\.)\.\.(?!\.)")

# Arabic, Persian and the scripts of India need these between letters.
JOINERS = "\u200c\u200d"
# Marks combine with the letter before them. (``\\w`` does not match all of them.)
LONE_MARK = re.compile(r"(?:^|[\s!-@\[-`{-~])[^\w\s!-~]")
KEPT = FULL_WIDTH + "…\u0e33\u0eb3"  # The last two are letters of Thai and Lao.


def character(message):
    """Characters that the language does not use, are not seen, or look like others."""
    own = message.language_rules.characters
    for found in dict.fromkeys(message.translation):
        if found in message.source or " " <= found <= "~":
            continue
        category = unicodedata.category(found)
        if not own and (category[0] == "M" or found in JOINERS):
            continue  # See below.
        if category[0] in "CZ" or category in ("Mn", "Me") or found == "\ufffd":
            yield f"has the invisible or broken character U+{ord(found):04X}"
        elif unicodedata.normalize("NFKC", found) != found and found not in KEPT:
            yield f"has {found!r} (U+{ord(found):04X}) in the place of a usual character"
        elif own and not re.match(f"[{own}]", found):
            yield f"has the character {found!r} (U+{ord(found):04X}), which is foreign here"
    if not own:
        for found in LONE_MARK.findall(message.translation):
            if unicodedata.category(found[-1])[0] == "M" or found[-1] in JOINERS:
                yield f"has the mark U+{ord(found[-1]):04X} without a letter before it"
        if len(unicodedata.normalize("NFC", message.translation)) < len(message.translation):
            yield "has a letter and its mark as two characters (use the form NFC)"


def spacing(message):
    """Spaces and line ends as the language writes them."""
    text = message.prose.replace("\n", " ")
    if "  " in text.strip() and "  " not in message.source_prose:
        yield "has two spaces in a row"
    if "\n" in message.translation.strip() and "\n" not in message.source.strip():
        yield "has a line end, which the source has not"
    for end in (r"\A\s*", r"\s*\Z"):
        source, translation = (re.search(end, x)[0] for x in message.texts)
        if source != translation:
            yield f"begins or ends with {translation!r}, the source with {source!r}"
    if pattern := message.language_rules.spacing:
        for found in re.finditer(pattern, text):
            yield f"lacks a space or has one too many in {shown(found[0])!r}"


def punctuation(message):
    """No mark twice, and none without its other half."""
    text = message.prose.replace("\n", " ")
    for found in DOUBLED_MARK.findall(text):
        is_quoted = found in FULL_WIDTH and found in message.source  # It speaks of it.
        if found + found not in message.source and not is_quoted:
            yield f"has two punctuation marks in a row, after {found!r}"
    if "..." in text and "..." not in message.source:
        yield "has '...'; write '…' where the source does"
    for pair in ("()", "（）", "“”", "[]", "《》"):
        if not _is_balanced(text, pair) and _is_balanced(message.source_prose, pair):
            yield f"has one of {pair!r} without the other"
    if text.count('"') > message.source_prose.count('"'):
        yield "has a quotation mark that the source has not"
    if re.search('[“"]', message.source_prose) and not re.search("[“”\"‘’'«»‹›„‚《「『*]", text):
        yield "lacks the quotation marks"


def _is_balanced(text, pair):
    depth = 0
    for found in text:
        depth += (found == pair[0]) - (found == pair[1])
        if depth < 0:
            return False
    return depth == 0


def ending(message):
    """The punctuation mark at the end is that of the source."""
    source, translation = final_mark(message.source_prose), final_mark(message.prose)
    if translation not in message.language_rules.endings.get(source, [translation]):
        yield f"ends with {translation!r}, where the source ends with {source!r}"
