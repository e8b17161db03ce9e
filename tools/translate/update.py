"""Bring the catalogs up to date with the English text."""

import re
import unicodedata
from dataclasses import dataclass, field
from difflib import get_close_matches

from babel.messages.catalog import Catalog, Message

from ..project.languages import TRANSLATIONS
from ..project.paths import relative
from .catalogs import catalogs_of, is_translated, path_of, read, write
from .extract import extract

SIMILAR = 0.6  # How much of a gone text a new one of its page must have in common with it.
SIMILAR_ELSEWHERE = 0.75  # The same for one of another page.
# The comment of an old text, of which a fuzzy one was made: it may come back.
SUPERSEDED = "kept until its new text is reviewed"
NO_PART = 20  # characters; a shorter text is in others by chance


def update():
    """Bring all catalogs up to date with the sources.

    What is translated stays so, also when it moves to another page or comes back after
    it was gone. A text that was changed keeps its translation, marked fuzzy; it is not
    marked if only markup changed and the translation can follow. No translation is lost:
    what is in no page any more is kept as obsolete.
    """
    templates = extract()
    for language in TRANSLATIONS:
        found = {path: read(path) for path in catalogs_of(language)}
        for path, text in updated(found, templates, language):
            if not path.is_file() or path.read_bytes() != text.encode():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
                print(f"    updated {relative(path)}")


def updated(found, templates, language):
    """Yield the path and the text of each catalog of a language, from all that there are."""
    messages = {entry.id for template in templates.values() for entry in template}
    memory = Memory.of(found, messages)
    for page, template in templates.items():
        path = path_of(language, page)
        yield path, written(found.get(path, Catalog()), template, language, memory)


@dataclass(frozen=True)
class Memory:
    """The translations of a language: ``reviewed`` and not, by their msgid.

    ``gone`` has a list of entries for each catalog: their msgid is on no page any more.
    """

    reviewed: dict = field(default_factory=dict)
    fuzzy: dict = field(default_factory=dict)
    gone: list = field(default_factory=list)

    @classmethod
    def of(cls, catalogs, messages):
        memory = cls()
        # Those in use come last: they count more than what is obsolete.
        kinds = [lambda catalog: catalog.obsolete.values(), lambda catalog: catalog]
        for entries_of in kinds:
            for catalog in catalogs.values():
                for entry in entries_of(catalog):
                    if entry.id and is_translated(entry):
                        found = memory.fuzzy if entry.fuzzy else memory.reviewed
                        found[entry.id] = entry
        for catalog in catalogs.values():
            entries = [*catalog, *reversed(catalog.obsolete.values())]
            gone = [x for x in entries if x.id not in messages and is_translated(x)]
            memory.gone.append([x for x in gone if isinstance(x.id, str)])
        return memory

    def gone_from(self, catalog):
        """What is gone from a catalog, and what is gone from the others."""
        entries = {id(x) for x in [*catalog, *catalog.obsolete.values()]}
        here = [x for found in self.gone for x in found if id(x) in entries]
        return here, [x for found in self.gone for x in found if id(x) not in entries]


def written(catalog, template, language, memory):
    """The text of a catalog brought up to date."""
    catalog = _merge(catalog, template, memory)
    catalog.locale = language.gettext
    catalog.project, catalog.version = "c10d-backend-tutorial", "1"
    catalog.header_comment = f"# {language.name} ({language.gettext})"
    catalog.fuzzy = False
    plural_forms = Catalog(locale=language.gettext).plural_forms
    catalog.mime_headers = [("Plural-Forms", plural_forms)]
    return write(catalog)


def _merge(catalog, template, memory):
    """A new catalog with the messages of a template, and all translations of ``catalog``."""
    merged, gone = Catalog(), memory.gone_from(catalog)
    taken_over = set()  # Gone texts whose translation is, fuzzy, that of a new one.
    for wanted in template:
        if wanted.id:
            entry = Message(wanted.id, flags=wanted.flags, context=wanted.context)
            known = catalog.get(wanted.id, wanted.context)
            taken_over.update(_translate(entry, known, memory, gone))
            merged[entry.id] = entry
    sources = " ".join(_source(entry) for entry in merged if entry.fuzzy and entry.previous_id)
    for entry in [*catalog.obsolete.values(), *catalog]:
        in_use = not entry.id or merged.get(entry.id, entry.context)
        is_worth_it = is_translated(entry) and entry.string != entry.id
        if SUPERSEDED in entry.user_comments and entry.id not in sources:
            continue
        if not in_use and is_worth_it and not _is_draft(entry, memory, taken_over):
            entry.flags &= {"fuzzy"}
            if entry.id in taken_over:
                entry.user_comments = [*entry.user_comments, SUPERSEDED]
            merged.obsolete[entry.id] = entry
    return merged


def _is_draft(entry, memory, taken_over):
    """Whether another entry has all that a fuzzy one has."""
    if not entry.fuzzy:
        return False
    reviewed = memory.reviewed.get(_source(entry))
    return entry.id in taken_over or (reviewed and reviewed.string == entry.string)


def _translate(entry, known, memory, gone):
    """Fill in what is known of an entry; return the gone texts that it was made of."""
    if known:
        entry.user_comments = known.user_comments
    if known and is_translated(known) and not known.fuzzy:
        entry.string = known.string
    elif entry.id in memory.reviewed and (not known or not known.fuzzy or known.previous_id):
        _accept(entry, memory.reviewed[entry.id])
    elif known and is_translated(known):
        _propose(entry, known)
    elif entry.id in memory.fuzzy:
        _propose(entry, memory.fuzzy[entry.id])
    elif isinstance(entry.id, str):
        here, elsewhere = gone
        for other in here + elsewhere:
            followed = None if other.fuzzy else follow_markup(other.id, entry.id, other.string)
            if followed:
                _accept(entry, other, followed)
                return []
        if parts := _parts(entry.id, here + elsewhere):
            _join(entry, parts)
            return [x.id for x in parts]
        similar = _similar(entry.id, here, SIMILAR) or _similar(
            entry.id, elsewhere, SIMILAR_ELSEWHERE
        )
        if similar:
            _propose(entry, similar)
            return [similar.id]
    return []


def _accept(entry, other, translation=None):
    entry.string = translation or other.string
    comments = dict.fromkeys([*entry.user_comments, *other.user_comments])
    entry.user_comments = [x for x in comments if x != SUPERSEDED]


def _propose(entry, other):
    _accept(entry, other)
    entry.flags.add("fuzzy")
    # What the translation was made for, however often the text has changed since.
    if other.previous_id or other.id != entry.id:
        entry.previous_id = [_source(other)]


def _source(entry):
    """The English text that a translation was made for."""
    return entry.previous_id[0] if entry.fuzzy and entry.previous_id else entry.id


def _parts(text, gone):
    """The gone texts that a new one consists of, if they are several."""
    found = [(text.find(x.id.rstrip(".:;")), -len(x.id), n, x) for n, x in enumerate(gone)]
    parts, end = [], 0
    for begin, _, _, part in sorted(found):
        if begin >= end and part.id.strip(".:;"):
            parts.append(part)
            end = begin + len(part.id)
    covered = sum(len(x.id) for x in parts)
    return parts if len(parts) > 1 and covered > 0.8 * len(text) else []


def _join(entry, parts):
    for part in parts:
        _propose(entry, part)
    entry.previous_id = [" ".join(map(_source, parts))]
    entry.string = parts[0].string
    for part in parts[1:]:
        is_spaced = unicodedata.east_asian_width(entry.string[-1]) not in "WF"
        entry.string += " " * is_spaced + part.string


def _similar(text, gone, least):
    """The gone text that is most like a new one, or that the new one was cut out of."""
    whole = [x for x in gone if len(text) >= NO_PART and text.rstrip(".:;") in x.id]
    closest = get_close_matches(text, [x.id for x in gone], 1, least)
    return next((x for x in gone if x.id in closest), None) or next(iter(whole), None)


# The target of a link, or the name of a role: what a translation only copies.
COPIED = re.compile(
    r"(?<=\]\()[^)]+(?=\))|(?<= <)[^<>]+(?=>`)|(?<=:)[\w:+-]+(?=:`)|(?<=\{)[\w:-]+(?=\}`)"
)


def follow_markup(old, new, translation):
    """Return a translation of ``old`` as one of ``new``, or None.

    This is possible if only targets and roles differ, and each of them is in the translation
    as often as in the source.
    """
    if not isinstance(translation, str) or COPIED.sub("", old) != COPIED.sub("", new):
        return None
    pairs = list(zip(COPIED.findall(old), COPIED.findall(new), strict=True))
    replacement = dict(pairs)
    if any(replacement[before] != after for before, after in pairs):
        return None
    if sorted(COPIED.findall(translation)) != sorted(COPIED.findall(old)):
        return None
    return COPIED.sub(lambda found: replacement[found[0]], translation)
