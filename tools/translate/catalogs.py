"""Read and write message catalogs.

Every page has one catalog, locales/LANGUAGE/LC_MESSAGES/PAGE.po; the text of
templates and of the theme is in sphinx.po. No message has plural forms, as Sphinx extracts none.
"""

import codecs
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import PoFileError, denormalize, normalize, read_po, write_po

from ..project.errors import BuildError
from ..project.languages import TRANSLATIONS, Language
from ..project.paths import LOCALES, relative

WIDTH = 78
LARGEST = 1_000_000  # bytes; ours have up to 25,000
# Headers that say when something happened would change with every run.
VOLATILE = re.compile(
    r'^"(POT-Creation-Date|PO-Revision-Date|Generated-By|Report-Msgid-Bugs-To|'
    r"Last-Translator|Language-Team): .*\n",
    re.M,
)

# One line of a catalog: empty, a comment, or a keyword and a string, or a string.
LINE = re.compile(r'\s*(#.*|((msg(ctxt|id|str)\s+)?"(\\[\\"abfnrtv]|[^"\\])*"\s*)?)$')
ENTRY = re.compile(r'^(?:msgctxt (?:".*"\s*)+)?msgid (?:".*"\s*)+', re.M)


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
    return sorted(language.catalogs.rglob("*.po"))


def foreign_files() -> Iterator[str]:
    """Yield a fault for each file in locales/ that is no catalog of a translation.

    Sphinx would use some of them: a catalog of the source language, or a compiled one.
    """
    folders = [language.catalogs for language in TRANSLATIONS]
    for path in _all_files():
        is_compiled = path.suffix == ".mo" and path.with_suffix(".po").is_file()
        if path == LOCALES / "exemptions.csv":
            continue
        if not any(folder in path.parents for folder in folders):
            yield (
                f"{_printable(path)}: is in the folder of no translation of languages.toml; "
                "remove it"
            )
        elif path.suffix != ".po" and not is_compiled:
            yield f"{_printable(path)}: is no catalog; remove it"


def _dangerous_files() -> Iterator[str]:
    """Yield a fault for each file that leads elsewhere, never ends, or has an odd name."""
    for path in _all_files():
        if path.is_symlink() or not path.is_file():
            yield f"{_printable(path)}: is a link or a device; a catalog is a file of its own"
        elif path.stat().st_size > LARGEST:
            yield f"{_printable(path)}: is larger than {LARGEST} bytes; no catalog is"
        elif not path.name.isprintable():
            yield f"{_printable(path)}: has a name with a control character; rename it"


def _all_files() -> Iterator[Path]:
    for place, folders, names in os.walk(LOCALES):
        links = [name for name in folders if Path(place, name).is_symlink()]
        yield from sorted(Path(place, name) for name in [*names, *links])


def _printable(path: Path) -> str:
    """Return a path in one line, whatever is in its name."""
    return "".join(x if x.isprintable() else ascii(x)[1:-1] for x in relative(path))


def read(path: Path) -> Catalog:
    """Read a catalog. Raises BuildError with the places of what is no catalog."""
    if malformed := list(_malformed_lines(path)):
        raise BuildError(
            "\n".join(f"{relative(path)}:{n}: malformed catalog: {what}" for n, what in malformed)
        )
    try:
        catalog = parse(path.read_bytes())
        catalog.num_plurals  # noqa: B018 - Babel reads the header when it is asked.
        if codecs.lookup(catalog.charset).name != "utf-8":
            raise ValueError(f"charset={catalog.charset}; write charset=utf-8")
    except (PoFileError, ValueError, LookupError, TypeError) as error:
        line = (getattr(error, "lineno", None) or 0) + 1  # Babel counts from 0.
        reason = re.sub(r" on \d+$", "", str(error))
        raise BuildError(f"{relative(path)}:{line}: malformed catalog: {reason}") from None
    return catalog


def parse(content: bytes) -> Catalog:
    """Return the catalog that a file holds. Raises what Babel raises if it holds none."""
    # Gettext's tools write this above an obsolete text, and Babel does not read it.
    content = content.replace(b"\n#~| ", b"\n#| ")
    catalog = read_po(io.BytesIO(content), abort_invalid=True)
    for message in [*catalog, *catalog.obsolete.values()]:
        _take_over_previous_id(message)
    return catalog


def _malformed_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of each line that Babel would make something of, and the fault."""
    content = path.read_bytes()
    last = None
    for number, line in enumerate(content.split(b"\n"), start=1):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            yield number, "not UTF-8"
            continue
        if not LINE.match(text):
            yield (
                number,
                f"{text.strip()!r}; a line is a comment, or msgid or msgstr and a string in "
                'quotation marks, and quotation marks within the string are written \\"',
            )
        keyword = text.split(" ")[0]
        if keyword == last == "msgstr":
            yield number, "a msgstr without a msgid"
        if keyword.startswith("msg"):
            last = keyword
    text, msgids = content.decode(errors="replace"), set()
    for entry in ENTRY.finditer(text):
        msgid = "".join(re.findall('"(.*)"', entry[0]))
        if msgid in msgids:
            yield text.count("\n", 0, entry.start()) + 1, f"the msgid {msgid!r} stands twice"
        msgids.add(msgid)


def _take_over_previous_id(message: Message) -> None:
    """Set the msgid that a fuzzy text was for, which Babel reads as a comment."""
    previous = [x for x in message.user_comments if x.startswith("|")]
    if previous:
        message.user_comments[:] = [x for x in message.user_comments if x not in previous]
        texts = re.findall(r'"(.*)"', "\n".join(previous))
        message.previous_id = [denormalize("\n".join(f'"{text}"' for text in texts))]


def write(catalog: Catalog) -> str:
    """Return the text of a catalog, with obsolete texts last. Locations are left out."""
    header = io.BytesIO()
    write_po(header, catalog, width=WIDTH)
    header_text = VOLATILE.sub("", header.getvalue().decode()).partition("\n\n")[0] + "\n"
    entries = [_entry(message) for message in catalog if message.id]
    entries += [_entry(message, "#~ ") for message in catalog.obsolete.values()]
    return "\n".join([header_text, *entries]) + "\n"


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
