"""Bring the catalogs up to date with the English text."""

import copy
import re

from babel.messages.catalog import Catalog

from ..project.languages import TRANSLATIONS
from ..project.paths import relative
from .catalogs import catalogs_of, is_translated, path_of, read, write
from .extract import extract


def update():
    """Bring all catalogs up to date with the sources.

    What is translated stays so, also when it moves to another page or comes back after
    it was gone. A text that was changed keeps its translation, marked fuzzy; it is not
    marked if only markup changed and the translation can follow.
    """
    templates = extract()
    for language in TRANSLATIONS:
        found = {path: read(path) for path in catalogs_of(language)}
        known = _known_translations(found.values())
        for page, template in templates.items():
            path = path_of(language, page)
            text = written(found.get(path, Catalog()), template, language, known)
            if not path.is_file() or path.read_bytes() != text.encode():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
                print(f"    updated {relative(path)}")


def written(catalog, template, language, known):
    """The text of a catalog brought up to date. It changes ``catalog``."""
    catalog = _merge(catalog, template, known)
    catalog.locale = language.gettext
    catalog.project, catalog.version = "c10d-backend-tutorial", "1"
    catalog.header_comment = f"# {language.name} ({language.gettext})"
    catalog.fuzzy = False
    plural_forms = Catalog(locale=language.gettext).plural_forms
    catalog.mime_headers = [("Plural-Forms", plural_forms)]
    for entry in catalog:
        if entry.id and (known_entry := template.get(entry.id, entry.context)):
            entry.flags = known_entry.flags | (entry.flags & {"fuzzy"})
    return write(catalog)


def _known_translations(catalogs):
    """Every translation there is or was in a language, by its msgid."""
    known = {}
    for catalog in catalogs:
        for entry in [*catalog.obsolete.values(), *catalog]:
            if entry.id and is_translated(entry) and not entry.fuzzy:
                known[entry.id] = entry.string
    return known


def _merge(catalog, template, known):
    previous_ids = {entry.id: entry.previous_id for entry in catalog}
    # Babel puts the entries themselves into the catalog: each language needs its own.
    catalog.update(copy.deepcopy(template), update_creation_date=False)
    for entry in catalog:
        if not entry.id:
            continue
        if entry.id in known and (entry.fuzzy or not is_translated(entry)):
            _accept(entry, known[entry.id])
        elif entry.fuzzy and previous_ids.get(entry.id):
            entry.previous_id = previous_ids[entry.id]  # Babel forgets it.
        elif entry.fuzzy and entry.previous_id:
            if translation := follow_markup(entry.previous_id[0], entry.id, entry.string):
                _accept(entry, translation)
    for key, entry in list(catalog.obsolete.items()):
        # Nothing to keep, or in use again.
        if entry.fuzzy or not is_translated(entry) or catalog.get(entry.id):
            del catalog.obsolete[key]
    return catalog


def _accept(entry, translation):
    entry.string = translation
    entry.flags.discard("fuzzy")
    entry.previous_id = []


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
