"""What a text says: nothing twice, nothing left out, and nothing added."""

import re

from .message import SENTENCE_END, count_sentences, shown

NEGATION = re.compile(r"\b(?:not(?! only)|never|cannot|none|no(?! more))\b|n't\b", re.I)
ABSENCE = re.compile(r"\bwithout\b", re.I)
OBLIGATION = re.compile(r"\b(?:must|(?<!not )ha(?:ve|s) to)\b(?! not)")
NOTE = (
    r"\b(?:TODO|FIXME|XXX|TBD)\b|\[\?\]|\?\?|[？]{2}|(?i:\btranslation:|\btranslated (?:text|by))"
)

PATH = re.compile(r"\S*/\S*\w\.\w+\b")


def doubled(message):
    """A word or a sentence twice in a row."""
    for pattern in message.language_rules.doubled:
        for found in re.finditer(pattern, message.prose):
            if found[0] not in message.source:
                yield f"says {next(filter(None, found.groups()))!r} twice in a row"
    text = message.prose.strip()
    if (found := re.fullmatch(r"(.{2,}?) ?\1", text, re.S)) and text not in message.source:
        yield f"says {shown(found[1])!r} twice"
    if not _repeated(message.source_prose):
        for sentence in sorted(_repeated(message.prose)):
            yield f"says {shown(sentence)!r} twice"


def _repeated(text):
    sentences = [x.strip() for x in SENTENCE_END.split(text)]
    return {x for x in sentences if len(x) > 5 and sentences.count(x) > 1}


def length(message):
    """Nothing is left out, and nothing added, as far as the length of a text can tell."""
    if re.search("[A-Za-z]{3}", message.source_prose):
        if not re.search(r"[^\W\d_]", message.prose):
            yield "has no words"
    source, translation = len(message.source_prose), _width(message.prose)
    for characters, least, most in message.language_rules.lengths:
        if source >= characters:
            if not least * source <= translation <= most * source:
                yield "is much shorter or longer than the source: is it all there?"
            break
    if message.language_rules.lengths:
        expected, found = count_sentences(message.source_prose), count_sentences(message.prose)
        clauses = found + len(re.findall("[;；]", message.prose))
        if clauses < expected - 1 or (expected and found > 2 * expected + 2):
            yield f"has {found} sentences, the source {expected}"
        elif clauses < expected > 1 and translation < message.language_rules.joined * source:
            yield f"has {found} sentences, the source {expected}, and is shorter: is it all there?"


def wordless(message):
    """A text without words has nothing to translate."""
    if not re.search(r"[^\W\d_]", PATH.sub("", message.source_prose)):
        if message.translation != message.source:
            yield "is not its source, in which there is nothing to translate"


def _width(text):
    return sum(2 if found > "\u2e80" else 1 for found in text)


def negation(message):
    """What the source denies or demands is not translated as if it did not."""
    language = message.language_rules
    without = "|".join(filter(None, (language.negations, language.absences)))
    kinds = (NEGATION, language.negations), (ABSENCE, without), (OBLIGATION, language.obligations)
    for english, pattern in kinds:
        found = english.search(message.source_prose)
        if found and pattern and not re.search(pattern, message.prose):
            yield f"lacks what says {found[0]!r}"


def note(message):
    """Notes of a translator, and what a machine says about its own work."""
    if not re.search("translat", message.source, re.I):
        pattern = "|".join(filter(None, (NOTE, message.language_rules.notes)))
        for found in re.finditer(pattern, message.prose):
            if found[0] not in message.source:
                yield f"has the note {found[0]!r}"
