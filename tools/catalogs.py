"""Message catalogs: extract the messages, and merge them into locales/.

usage: python -m tools.catalogs update

Every page has one catalog, locales/LANGUAGE/LC_MESSAGES/PAGE.po; the text of
templates and of the theme is in sphinx.po.
"""

import copy
import io
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import PoFileError, denormalize, normalize, read_po, write_po

from . import page_sources, records
from .digest import digest, files_below
from .errors import BuildError, ending_the_program
from .languages import SOURCE_LANGUAGE, TRANSLATIONS
from .paths import BUILD, LOCALES, ROOT, ROOT_FILES, relative
from .run_sphinx import require_gallery_pages, run_sphinx

EXTRACTION = BUILD / "gettext"
DOCTREES = EXTRACTION / ".doctrees"
RECORD = "messages"
WIDTH = 78
TEMPLATES = [ROOT / "docs/_templates", ROOT_FILES, Path(find_spec("furo").origin).parent / "theme" / "furo"]
# Headers that say when something happened would change with every run.
VOLATILE = re.compile(
    r'^"(POT-Creation-Date|PO-Revision-Date|Generated-By|Report-Msgid-Bugs-To|'
    r'Last-Translator|Language-Team): .*\n',
    re.M,
)

# One line of a catalog: empty, a comment, or a keyword and a string, or a string.
LINE = re.compile(
    r'\s*(#.*|((msg(ctxt|id|id_plural|str(\[\d+\])?)\s+)?"(\\[\\"abfnrtv]|[^"\\])*"\s*)?)$'
)
ENTRY = re.compile(r'^(?:msgctxt (?:".*"\s*)+)?msgid (?:".*"\s*)+', re.M)


def extract():
    """Return a catalog of msgids for each page, by its path without suffix."""
    return {page: read(path) for page, path in extracted().items()}


def extracted(popen=subprocess.Popen):
    """Extract the messages, if anything in English has changed; return the files.

    When only some pages have changed, Sphinx reads just these again. ``popen`` starts it.
    """
    require_gallery_pages()
    sources, known = page_sources.digests(), records.load(RECORD)
    is_intact = known and known["made"] == digest(files_below(EXTRACTION))
    if not is_intact or known["sources"] != sources:
        records.forget(RECORD)
        changed = page_sources.changed(known["sources"], sources) if is_intact else None
        if changed is None:
            shutil.rmtree(EXTRACTION, ignore_errors=True)
        else:
            for page in changed:
                (DOCTREES / f"{page}.doctree").unlink()
        _extract(popen)
        made = digest(files_below(EXTRACTION))
        records.save(RECORD, {"sources": sources, "made": made})
    return {
        path.relative_to(EXTRACTION).with_suffix("").as_posix(): path
        for path in sorted(EXTRACTION.rglob("*.pot"))
    }


def _extract(popen):
    templates = ",".join(str(folder) for folder in TEMPLATES)
    options = ["-D", f"templates_path={templates}", "-d", DOCTREES]
    what = "extracting the messages"
    run_sphinx(what, "gettext", SOURCE_LANGUAGE, EXTRACTION, *options, popen=popen)


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
COPIED = re.compile(r"(?<=\]\()[^)]+(?=\))|(?<= <)[^<>]+(?=>`)|(?<=:)[\w:+-]+(?=:`)|(?<=\{)[\w:-]+(?=\}`)")


def follow_markup(old, new, translation):
    """Return a translation of ``old`` made one of ``new``, or None.

    That can be done if nothing but targets and roles differs, and each of them stands
    in the translation as often as in the source.
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


def path_of(language, page):
    """The catalog of a page in a language."""
    return _folder(language) / f"{page}.po"


def page_of(language, path):
    """The page that a catalog is for."""
    return path.relative_to(_folder(language)).with_suffix("").as_posix()


def catalogs_of(language):
    """All catalogs of a language, also those whose page is gone."""
    return sorted(_folder(language).rglob("*.po"))


def _folder(language):
    return LOCALES / language.gettext / "LC_MESSAGES"


def is_translated(message):
    """Whether there is a text for each plural form, or for the only form."""
    texts = message.string if isinstance(message.string, tuple) else (message.string,)
    return all(texts)


def read(path):
    """Read a catalog. Raises BuildError with the places of what is no catalog."""
    if malformed := list(malformed_lines(path)):
        raise BuildError("\n".join(malformed))
    try:
        with open(path, "rb") as file:
            catalog = read_po(file, abort_invalid=True)
        catalog.num_plurals  # noqa: B018 - Babel reads the header when it is asked.
    except (PoFileError, ValueError, LookupError, TypeError) as error:
        line = (getattr(error, "lineno", None) or 0) + 1  # Babel counts from 0.
        reason = re.sub(r" on \d+$", "", str(error))
        raise BuildError(f"{relative(path)}:{line}: malformed catalog: {reason}") from None
    for message in catalog:
        _take_over_previous_id(message)
    return catalog


def malformed_lines(path):
    """Yield what is wrong in single lines; Babel makes something of most of it."""
    last = None
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            yield f"{relative(path)}:{number}: malformed catalog: not UTF-8"
            continue
        if not LINE.match(text):
            yield (
                f"{relative(path)}:{number}: malformed catalog: {text.strip()!r}; a line is "
                "a comment, or msgid or msgstr and a string in quotation marks, and "
                'quotation marks within the string are written \\"'
            )
        keyword = text.split(" ")[0]
        if keyword == last == "msgstr":
            yield f"{relative(path)}:{number}: malformed catalog: a msgstr without a msgid"
        if keyword.startswith("msg"):
            last = keyword
    text, seen = path.read_bytes().decode(errors="replace"), set()
    for entry in ENTRY.finditer(text):
        msgid = "".join(re.findall('"(.*)"', entry[0]))
        if msgid in seen:
            line = text.count("\n", 0, entry.start()) + 1
            yield f"{relative(path)}:{line}: malformed catalog: the msgid {msgid!r} stands twice"
        seen.add(msgid)


def _take_over_previous_id(message):
    """Babel writes the msgid that a fuzzy text was for, and reads it as a comment."""
    previous = [x for x in message.user_comments if x.startswith("|")]
    if previous:
        kept = [x for x in message.user_comments if not x.startswith("|")]
        message.user_comments[:] = kept
        texts = re.findall(r'"(.*)"', "\n".join(previous))
        message.previous_id = [denormalize("\n".join(f'"{text}"' for text in texts))]


def write(catalog):
    buffer = io.BytesIO()
    write_po(buffer, catalog, width=WIDTH)
    text = VOLATILE.sub("", buffer.getvalue().decode())
    return _with_previous_ids(text, catalog)


def _with_previous_ids(text, catalog):
    """Add the msgids that fuzzy texts were for; Babel breaks long ones in two."""
    for message in catalog:
        if message.fuzzy and message.previous_id:
            msgid = "msgid " + normalize(message.id, width=WIDTH)
            previous = "msgid " + normalize(message.previous_id[0], width=WIDTH - 3)
            comment = "".join(f"#| {line}\n" for line in previous.splitlines())
            text = text.replace(f"\n{msgid}\n", f"\n{comment}{msgid}\n", 1)
    return text


def main():
    if sys.argv[1:] != ["update"]:
        sys.exit(__doc__)
    with ending_the_program():
        update()


if __name__ == "__main__":
    main()
