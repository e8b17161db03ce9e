"""Bring the catalogs up to date with the English text."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from babel.messages.catalog import Catalog, Message

from ..project.errors import BuildError
from ..project.languages import TRANSLATIONS, Language
from ..project.paths import relative
from .catalogs import PageCatalog, parse, path_of, read_everything, write
from .extract import extract
from .losses import losses

SIMILAR = 0.6  # How much of a gone text a new one of its page must have in common with it.
SIMILAR_ELSEWHERE = 0.75  # The same for one of another page.
REPORTED = 8  # How many files, and how many messages, a report names for each language.
# The comment of an old text, of which a fuzzy one was made: it may come back.
SUPERSEDED = "kept until its new text is reviewed"


def update() -> None:
    """Bring all catalogs up to date with the sources.

    What is translated stays so, also when it moves to another page or comes back after
    it was gone. A text that was changed keeps its translation, marked fuzzy; it is not
    marked if only markup changed and the translation can follow. No translation is lost:
    what is in no page any more is kept as obsolete.

    Raises BuildError, and changes nothing, if a catalog is malformed or has lost translations.
    """
    templates = extract()
    present = read_everything(TRANSLATIONS)
    in_use = {entry.id for template in templates.values() for entry in template if entry.id}
    faults = [x for language in TRANSLATIONS for x in losses(language, lambda: in_use).values()]
    if faults:
        raise BuildError("\n".join(faults))
    for language, catalogs in present.items():
        written: list[str] = []
        filled: list[str] = []
        for path, text in updated(catalogs, templates, language):
            if not path.is_file() or path.read_bytes() != text.encode():
                _write_whole(path, text)
                written.append(relative(path))
                filled += _filled(path, catalogs.get(path), text)
        _report("updated", written, language)
        _report("filled with the translation of the same text elsewhere:", filled, language)


def _write_whole(path: Path, text: str) -> None:
    """Write a file so that, whenever this is interrupted, the old one or the new one is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.tmp")
    unfinished.write_text(text)
    unfinished.replace(path)


def _filled(path: Path, before: Catalog | None, text: str) -> Iterator[str]:
    """Yield the place of each message that an update has translated."""
    for entry in parse(text):
        present = before.get(entry.id) if before is not None else None
        if entry.id and entry.string and not entry.fuzzy and not (present and present.string):
            yield f"{relative(path)}:{entry.lineno} {entry.id[:60]!r}"


def _report(what: str, items: list[str], language: Language) -> None:
    for item in items[:REPORTED]:
        print(f"    {what} {item}")
    if (rest := len(items) - REPORTED) > 0:
        print(f"    {what} {rest} more of {language.gettext}")


def updated(
    catalogs: dict[Path, PageCatalog], templates: dict[str, Catalog], language: Language
) -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of each catalog of a language, from all that there are."""
    in_use = {entry.id for template in templates.values() for entry in template}
    memory = Memory.of(catalogs.values(), in_use)
    for page, template in templates.items():
        path = path_of(language, page)
        catalog = catalogs.get(path, PageCatalog())
        yield path, updated_text(catalog, template, language, memory)


@dataclass(frozen=True)
class Memory:
    """The translations of a language.

    ``best`` has one for each msgid: a reviewed one before a fuzzy one, and one in use before an
    obsolete one. ``gone`` are those whose msgid is on no page any more.
    """

    best: dict[str, Message] = field(default_factory=dict)
    gone: list[Message] = field(default_factory=list)

    @classmethod
    def of(cls, catalogs: Iterable[Catalog], in_use: set[str]) -> "Memory":
        ranked = [
            (entry.fuzzy, is_obsolete, entry)
            for catalog in catalogs
            for is_obsolete, entries in enumerate([catalog, reversed(catalog.obsolete.values())])
            for entry in entries
            if entry.id and entry.string
        ]
        gone = [entry for *_, entry in ranked if entry.id not in in_use]
        ranked.sort(key=lambda rank: rank[:2], reverse=True)
        return cls({entry.id: entry for *_, entry in ranked}, gone)


def updated_text(
    catalog: PageCatalog, template: Catalog, language: Language, memory: Memory | None = None
) -> str:
    """Return the text of a catalog brought up to date, by default from itself alone."""
    merged = _merge(catalog, template, memory or Memory())
    return write(merged, language, catalog.header)


def _merge(catalog: Catalog, template: Catalog, memory: Memory) -> Catalog:
    """Return a catalog with the messages of a template, and all translations of ``catalog``."""
    own = {id(entry) for entry in [*catalog, *catalog.obsolete.values()]}
    here = [entry for entry in memory.gone if id(entry) in own]
    elsewhere = [entry for entry in memory.gone if id(entry) not in own]
    merged, superseded = Catalog(), set()
    for message in template:
        if not message.id:
            continue
        entry = Message(message.id, flags=message.flags, context=message.context)
        present = catalog.get(message.id, message.context)
        if present:
            entry.user_comments = present.user_comments
        if best := _best(present, memory.best.get(entry.id)):
            _fill(entry, best, fuzzy=best.fuzzy)
        elif similar := _follow_or_propose(entry, here, elsewhere):
            superseded.add(similar.id)
        merged[entry.id] = entry
    _keep_obsolete(merged, catalog, memory, superseded)
    return merged


def _best(present: Message | None, other: Message | None) -> Message | None:
    """Return the entry to translate a message with: its present one, or another of its msgid."""
    if present and present.string:
        set_by_hand = present.fuzzy and not present.previous_id
        if not present.fuzzy or set_by_hand or not other or other.fuzzy:
            return present
    return other


def _fill(entry: Message, other: Message, *, fuzzy: bool) -> None:
    entry.string = other.string
    comments = dict.fromkeys([*entry.user_comments, *other.user_comments])
    entry.user_comments = [x for x in comments if x != SUPERSEDED]
    if fuzzy:
        entry.flags.add("fuzzy")
        # The text that the translation was made for, however often it has changed since.
        if other.previous_id or other.id != entry.id:
            entry.previous_id = [_source(other)]


def _source(entry: Message) -> str:
    """Return the English text that a translation was made for."""
    return entry.previous_id[0] if entry.fuzzy and entry.previous_id else entry.id


def _follow_or_propose(
    entry: Message, here: list[Message], elsewhere: list[Message]
) -> Message | None:
    """Translate an entry as a gone one, of its page or of others, that is like it.

    Return the gone entry if the translation must be reviewed, as more than markup has changed.
    """
    for gone in here + elsewhere:
        translation = None if gone.fuzzy else follow_markup(gone.id, entry.id, gone.string)
        if translation:
            _fill(entry, gone, fuzzy=False)
            entry.string = translation
            return None
    for candidates, least in ((here, SIMILAR), (elsewhere, SIMILAR_ELSEWHERE)):
        by_id = {gone.id: gone for gone in candidates}
        for similar in get_close_matches(entry.id, by_id, 1, least):
            _fill(entry, by_id[similar], fuzzy=True)
            return by_id[similar]
    return None


def _keep_obsolete(merged: Catalog, catalog: Catalog, memory: Memory, superseded: set[str]) -> None:
    """Keep the translations of texts that are gone, and of which nothing else has all."""
    sources = {_source(entry) for entry in merged if entry.fuzzy and entry.previous_id}
    for entry in [*catalog.obsolete.values(), *catalog]:
        if not entry.id or merged.get(entry.id, entry.context):
            continue
        if not entry.string or entry.string == entry.id:
            continue
        if SUPERSEDED in entry.user_comments and entry.id not in sources:
            continue
        original = memory.best.get(_source(entry))
        is_copy = original and not original.fuzzy and original.string == entry.string
        if entry.fuzzy and (entry.id in superseded or is_copy):
            continue
        entry.flags &= {"fuzzy"}
        if entry.id in superseded:
            entry.user_comments = [*entry.user_comments, SUPERSEDED]
        merged.obsolete[entry.id] = entry


# The target of a link, or the name of a role: what a translation only copies.
COPIED = re.compile(
    r"(?<=\]\()[^)]+(?=\))|(?<= <)[^<>]+(?=>`)|(?<=:)[\w:+-]+(?=:`)|(?<=\{)[\w:-]+(?=\}`)"
)


def follow_markup(old: str, new: str, translation: str) -> str | None:
    """Return a translation of ``old`` as one of ``new``, or None.

    This is possible if only targets and roles differ, and each of them is in the translation
    as often as in the source.
    """
    if COPIED.sub("", old) != COPIED.sub("", new):
        return None
    pairs = list(zip(COPIED.findall(old), COPIED.findall(new), strict=True))
    replacement = dict(pairs)
    if any(replacement[before] != after for before, after in pairs):
        return None
    if sorted(COPIED.findall(translation)) != sorted(COPIED.findall(old)):
        return None
    return COPIED.sub(lambda match: replacement[match[0]], translation)
