"""Read and write message catalogs.

Every page has one catalog, locales/LANGUAGE/LC_MESSAGES/PAGE.po; the text of
templates and of the theme is in sphinx.po.
"""

import io
import re

from babel.messages.pofile import PoFileError, denormalize, normalize, read_po, write_po

from ..project.errors import BuildError
from ..project.paths import relative

WIDTH = 78
# Headers that say when something happened would change with every run.
VOLATILE = re.compile(
    r'^"(POT-Creation-Date|PO-Revision-Date|Generated-By|Report-Msgid-Bugs-To|'
    r"Last-Translator|Language-Team): .*\n",
    re.M,
)

# One line of a catalog: empty, a comment, or a keyword and a string, or a string.
LINE = re.compile(
    r'\s*(#.*|((msg(ctxt|id|id_plural|str(\[\d+\])?)\s+)?"(\\[\\"abfnrtv]|[^"\\])*"\s*)?)$'
)
ENTRY = re.compile(r'^(?:msgctxt (?:".*"\s*)+)?msgid (?:".*"\s*)+', re.M)


def path_of(language, page):
    """The catalog of a page in a language."""
    return language.catalogs / f"{page}.po"


def page_of(language, path):
    """The page that a catalog is for."""
    return path.relative_to(language.catalogs).with_suffix("").as_posix()


def catalogs_of(language):
    """All catalogs of a language, also those whose page is gone."""
    return sorted(language.catalogs.rglob("*.po"))


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
