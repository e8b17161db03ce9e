"""Read and write message catalogs.

Every page has one catalog, locales/LANGUAGE/LC_MESSAGES/PAGE.po; the text of
templates and of the theme is in sphinx.po. No message has plural forms, as Sphinx extracts none.
"""

import io
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import PoFileError, PoFileParser, denormalize, normalize

from ..project.editors import is_editors_file
from ..project.errors import BuildError
from ..project.git import git
from ..project.languages import TRANSLATIONS, Language
from ..project.paths import LOCALES, relative
from .po_text import Header, Unreadable, decoded, for_babel, header_text

NONE = Header()
WIDTH = 78
LARGEST = 1_000_000  # bytes; ours have up to 25,000

# One line of a catalog: empty, a comment, or a keyword and a string, or a string.
KEYWORD = r"msg(?:ctxt|id|str)(?=[\s\"])"
LINE = re.compile(rf'\s*(#.*|(?:({KEYWORD})\s*)?"(?:\\["\\nrt]|[^"\\])*"\s*|)$')
ENTRY = re.compile(r'^\s*(?:msgctxt\s*(?:".*"\s*)+)?msgid\s*(?:".*"\s*)+', re.M)
# What stands in the place of a line in some files, and what it is.
KNOWN_FAULTS = {
    r"<<<<<<<|=======|>>>>>>>": "a conflict that git left there: keep one of the two sides",
    r"msgid_plural|msgstr\[": "a plural form, which no text of this site has: remove it",
    "\ufeff": "a byte order mark within the file: remove it",
    r".*[“”]\s*$": "a curved quotation mark in the place of a straight one",
    r'.*\\[^"\\nrt]': "an escape that stands for a character: write the character itself",
}


class PageCatalog(Catalog):
    """A catalog with the header of its file, of which Babel reads only some."""

    header = NONE


def path_of(language: Language, page: str) -> Path:
    """Return the catalog of a page in a language."""
    return language.catalogs / f"{page}.po"


def page_of(language: Language, path: Path) -> str:
    """Return the page that a catalog is for."""
    return path.relative_to(language.catalogs).with_suffix("").as_posix()


def catalogs_of(language: Language) -> list[Path]:
    """Return all catalogs of a language, also those whose page is gone.

    Raises BuildError if anything in locales/ is dangerous to read.
    """
    if dangerous := list(_dangerous_files()):
        raise BuildError("\n".join(dangerous))
    found = language.catalogs.rglob("*.po")
    return sorted(path for path in found if not is_editors_file(path.name))


def read_all(language: Language) -> dict[Path, PageCatalog]:
    """Read all catalogs of a language. Raises BuildError with the faults of all of them."""
    return read_everything([language])[language]


def read_everything(languages: Iterable[Language]) -> dict[Language, dict[Path, PageCatalog]]:
    """Read all catalogs of some languages. Raises BuildError with the faults of all of them."""
    result: dict[Language, dict[Path, PageCatalog]] = {}
    faults = []
    for language in languages:
        result[language] = {}
        for path in catalogs_of(language):
            try:
                result[language][path] = read(path, language)
            except BuildError as error:
                faults.append(str(error))
    if faults:
        raise BuildError("\n".join(faults))
    return result


def foreign_files() -> Iterator[str]:
    """Yield a fault for each file in locales/ that is no catalog of a translation."""
    folders = [language.catalogs for language in TRANSLATIONS]
    for path in _all_files():
        # Poedit compiles a catalog when it saves one.
        is_compiled = path.suffix == ".mo" and path.with_suffix(".po").is_file()
        if path == LOCALES / "exemptions.csv":
            continue
        if not any(folder in path.parents for folder in folders):
            yield (
                f"{_printable(path)}: is in the folder of no translation of languages.toml; "
                "move it away"
            )
        elif path.suffix != ".po" and not is_compiled:
            yield f"{_printable(path)}: is no catalog; move it away"


def _dangerous_files() -> Iterator[str]:
    """Yield a fault for each file that leads elsewhere, never ends, or has an odd name."""
    for path in _all_files():
        if path.is_symlink() or not path.is_file():
            yield f"{_printable(path)}: is no file of its own, as a catalog is"
        elif not os.access(path, os.R_OK):
            yield f"{_printable(path)}: you may not read it; change its permissions"
        elif path.stat().st_size > LARGEST:
            yield f"{_printable(path)}: is larger than {LARGEST} bytes; no catalog is"
        elif not path.name.isprintable():
            yield f"{_printable(path)}: has a name with a control character; rename it"


def _all_files() -> Iterator[Path]:
    for place, folders, names in os.walk(LOCALES):
        folders[:] = [name for name in folders if not is_editors_file(name)]
        odd = [x for x in folders if Path(place, x).is_symlink() or x.endswith(".po")]
        names = [name for name in [*names, *odd] if not is_editors_file(name)]
        yield from sorted(Path(place, name) for name in names)


def _printable(path: Path) -> str:
    """Return a path in one line, whatever is in its name."""
    return "".join(x if x.isprintable() else ascii(x)[1:-1] for x in relative(path))


def read(path: Path, language: Language | None = None) -> PageCatalog:
    """Read a catalog, as any editor leaves it.

    Raises BuildError, in one line, with the first place of what is no catalog, or if it is one of
    another language.
    """
    return checked(path.read_bytes(), path, language)


def checked(content: bytes, path: Path, language: Language | None = None) -> PageCatalog:
    """Return the catalog in the content of a file, as ``read`` does."""
    text = text_of(content, path)
    try:
        _require_well_formed(text)
        catalog = parse(decoded(content))
    except Unreadable as error:
        raise _malformed(path, error.line, str(error)) from None
    except PoFileError as error:
        reason = re.sub(r" on \d+$", "", str(error))
        raise _malformed(path, error.lineno + 1, reason) from None
    named = catalog.header.fields.get("language", "")
    if language and not _is_spelling_of(named, language.gettext):
        raise BuildError(
            f"{relative(path)}:1: its header says `Language: {named}`, not "
            f"{language.gettext}: correct it, or move the file to its own language"
        )
    return catalog


def text_of(content: bytes, path: Path) -> str:
    """Return the text in the content of a file as Babel reads it, with the lines of the file."""
    return text_and_header(content, path)[0]


def text_and_header(content: bytes, path: Path) -> tuple[str, Header]:
    """Return the text in the content of a file as Babel reads it, and the header of the file."""
    try:
        return for_babel(decoded(content))
    except Unreadable as error:
        raise _malformed(path, error.line, str(error)) from None


def _malformed(path: Path, line: int, reason: str) -> BuildError:
    return BuildError(f"{relative(path)}:{line}: malformed catalog: {reason}")


def parse(text: str) -> PageCatalog:
    """Return the catalog that a text holds. Raises PoFileError if it holds none."""
    text, header = for_babel(text)
    catalog = PageCatalog()
    PoFileParser(catalog, abort_invalid=True).parse(io.StringIO(text))
    catalog.header = header
    for message in [*catalog, *catalog.obsolete.values()]:
        _take_over_previous_id(message)
        if not any(message.user_comments):
            message.user_comments.clear()  # Lines that keep entries apart.
    return catalog


def of_commit(commit: str, name: str) -> Catalog:
    """Return the catalog that a commit has in a file, or an empty one if it had none there."""
    try:
        return parse(git("show", f"{commit}:{name}") or "")
    except (PoFileError, ValueError):
        return Catalog()


def _is_spelling_of(named: str, gettext: str) -> bool:
    """Return whether a header that names a language, or none, is one of a catalog of another."""
    ours, theirs = (x.replace("-", "_").lower().split("_") for x in (gettext, named))
    territories = {x[-1] for x in (ours, theirs) if len(x) > 1 and len(x[-1]) == 2}
    return not named or (ours[0] == theirs[0] and len(territories) < 2)


def _require_well_formed(text: str) -> None:
    """Raise Unreadable for the first line that Babel would make something of."""
    last, lines = None, text.split("\n")
    for number, line in enumerate(lines, start=1):
        match = LINE.match(line)
        if not match:
            raise Unreadable(number, f"{line.strip()[:60]!r}; {_explained(line)}")
        if match[2] == last == "msgstr":
            raise Unreadable(number, "a msgstr without a msgid")
        last = match[2] or last
    obsolete = "\n".join(x[2:] if re.match("#~[^|]", x) else "" for x in lines)
    found = 0
    for kind in (text, obsolete):
        first_line: dict[str, int] = {}
        for entry in ENTRY.finditer(kind):
            found += 1
            number = kind.count("\n", 0, entry.end() - len(entry[0].lstrip())) + 1
            msgid = "".join(re.findall('"(.*)"', entry[0]))
            if msgid in first_line:
                raise Unreadable(
                    number,
                    f"the msgid {msgid[:60]!r} stands twice, in line {first_line[msgid]}, too: "
                    "keep one of the two",
                )
            first_line[msgid] = number
    if not found:
        raise Unreadable(1, "it has no message; its editor may have damaged it")


def _explained(line: str) -> str:
    """Return what a line is that is none of a catalog."""
    for pattern, what in KNOWN_FAULTS.items():
        if re.match(rf"\s*(?:{pattern})", line):
            return what
    return (
        "a line is a comment, or msgid or msgstr and a string in quotation marks, and "
        'quotation marks within the string are written \\"'
    )


def _take_over_previous_id(message: Message) -> None:
    """Set the msgid that a fuzzy text was for, which Babel reads as a comment."""
    previous = [x for x in message.user_comments if x.startswith("|")]
    if previous:
        message.user_comments[:] = [x for x in message.user_comments if x not in previous]
        texts = re.findall(r'"(.*)"', "\n".join(previous))
        message.previous_id = [denormalize("\n".join(f'"{text}"' for text in texts))]


def write(catalog: Catalog, language: Language | None = None, header: Header = NONE) -> str:
    """Return the text of a catalog, with obsolete texts last. Locations are left out.

    Of its present header, the comments stay, and the fields that name people. The others are
    ours, or would change with each editor and day.
    """
    title, fields = "", {"MIME-Version": "1.0"}
    if language:
        title = f"{language.name} ({language.gettext})"
        fields = {
            "Project-Id-Version": "c10d-backend-tutorial 1",
            "Last-Translator": header.credit("Last-Translator"),
            "Language-Team": header.credit("Language-Team"),
            "Language": language.gettext,
            "Plural-Forms": Catalog(locale=language.gettext).plural_forms,
            **fields,
        }
    fields["Content-Type"] = "text/plain; charset=utf-8"
    fields["Content-Transfer-Encoding"] = "8bit"
    entries = [_entry(message) for message in catalog if message.id]
    entries += [_entry(message, "#~ ") for message in catalog.obsolete.values()]
    return "\n".join([header_text(title, fields, header), *entries]) + "\n"


def _entry(message: Message, prefix: str = "") -> str:
    # Babel breaks long comments, so that what follows is no previous msgid any more, and it
    # forgets of obsolete texts that they are fuzzy.
    lines = [f"# {comment}".rstrip() for comment in message.user_comments]
    if message.flags:
        lines.append(f"#, {', '.join(sorted(message.flags))}")
    if message.fuzzy and message.previous_id:
        previous = "msgid " + normalize(message.previous_id[0], width=WIDTH - 3)
        mark = "#~|" if prefix else "#|"
        lines += [f"{mark} {line}" for line in previous.splitlines()]
    texts = {"msgctxt": message.context} if message.context else {}
    texts |= {"msgid": message.id, "msgstr": message.string or ""}
    for keyword, text in texts.items():
        lines.append(f"{prefix}{keyword} {normalize(text, prefix=prefix, width=WIDTH)}")
    return "\n".join(lines) + "\n"
