"""What a text says: nothing twice, and nothing left out or added."""

import re
from collections.abc import Iterator

from .message import Message, quoted

SENTENCE_END = re.compile(r"[。？！]+|[.?!]+(?=[)）”\"’*]*(?:\s|$))")
# A word; or two characters or more of a script without spaces, but no 一个一个.
TWICE = re.compile(r"\b([^\W\d]{2,}) \1\b|((?!一)[\u4e00-\u9fff]{2,})\2")


def doubled(message: Message) -> Iterator[str]:
    """Report a word or a sentence twice in a row."""
    for match in TWICE.finditer(message.prose):
        if match[0] not in message.source:
            yield f"says {match[1] or match[2]!r} twice in a row"
    if not _repeated(message.source_prose):
        for sentence in sorted(_repeated(message.prose)):
            yield f"says {quoted(sentence)} twice"


def _repeated(text: str) -> set[str]:
    sentences = [x.strip() for x in SENTENCE_END.split(text)]
    return {x for x in sentences if len(x) > 5 and sentences.count(x) > 1}


def length(message: Message) -> Iterator[str]:
    """Report what is left out or added, as far as the length of a text can tell."""
    if re.search("[A-Za-z]{3}", message.source_prose):
        if not re.search(r"[^\W\d_]", message.prose):
            yield "has no words"
    source = len(message.source_prose)
    translation = sum(2 if x > "\u2e80" else 1 for x in message.prose)
    for characters, least, most in message.language_rules.lengths:
        if source >= characters:
            if not least * source <= translation <= most * source:
                yield "is much shorter or longer than the source: is it all there?"
            break
