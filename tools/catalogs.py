"""Message catalogs: extract the messages, merge them into locales/, check them.

usage: python -m tools.catalogs update|check|status

Every page has one catalog, locales/LANGUAGE/LC_MESSAGES/PAGE.po; the text of
templates and of the theme is in sphinx.po.
"""

import io
import re
import shutil
import sys
from pathlib import Path

import furo
from babel.messages.catalog import Catalog
from babel.messages.pofile import PoFileError, denormalize, normalize, read_po, write_po

from .errors import BuildError, readable
from .languages import SOURCE_LANGUAGE, TRANSLATIONS
from .paths import BUILD, LOCALES, LOGS, ROOT, relative
from .processes import run
from .render import require_gallery_pages, sphinx_command

WIDTH = 78
TIMEOUT = 300  # seconds; it takes about 5
TEMPLATES = [ROOT / "docs/_templates", Path(furo.__file__).parent / "theme" / "furo"]
# Headers that say when something happened would change with every run.
VOLATILE = re.compile(
    r'^"(POT-Creation-Date|PO-Revision-Date|Generated-By|Report-Msgid-Bugs-To|'
    r'Last-Translator|Language-Team): .*\n',
    re.M,
)


def extract():
    """Return a catalog of msgids for each page, by its path without suffix."""
    require_gallery_pages()
    output = BUILD / "gettext"
    shutil.rmtree(output, ignore_errors=True)
    templates = ",".join(str(folder) for folder in TEMPLATES)
    options = ["-W", "--keep-going", "-E", "-D", f"templates_path={templates}"]
    options += ["-d", output / ".doctrees"]
    log = LOGS / "gettext.log"
    command = sphinx_command("gettext", SOURCE_LANGUAGE, output, *options)
    done = run(command, timeout=TIMEOUT, log=log)
    if done.status != 0:
        raise BuildError(f"extracting the messages failed:\n{readable(done.text)}")
    return {
        path.relative_to(output).with_suffix("").as_posix(): _read(path)
        for path in sorted(output.rglob("*.pot"))
    }


def update():
    """Bring all catalogs up to date with the sources."""
    for language, path, template in _catalogs(extract()):
        catalog = _read(path) if path.is_file() else Catalog()
        catalog.locale = language.gettext
        catalog.project, catalog.version = "c10d-backend-tutorial", "1"
        catalog.header_comment = f"# {language.name} ({language.gettext})"
        catalog.fuzzy = False
        catalog.update(template, update_creation_date=False)
        for key, message in list(catalog.obsolete.items()):
            if message.fuzzy or not _is_translated(message):  # Nothing to keep.
                del catalog.obsolete[key]
        text = _write(catalog)
        if not path.is_file() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"    updated {relative(path)}")


def check():
    """Return how many messages there are; raise if one is not translated."""
    templates = extract()
    findings = []
    for _, path, template in _catalogs(templates):
        findings += _check_catalog(path, template)
    if findings:
        raise BuildError("message catalogs:\n" + "\n".join(findings))
    return sum(len(template) for template in templates.values())


def status():
    """Print translated/fuzzy/untranslated for each catalog."""
    for _, path, template in _catalogs(extract()):
        catalog = _read(path) if path.is_file() else Catalog()
        messages = [catalog.get(m.id, m.context) for m in template if m.id]
        fuzzy = sum(1 for m in messages if m and m.fuzzy)
        done = sum(1 for m in messages if m and _is_translated(m) and not m.fuzzy)
        rest = len(messages) - done - fuzzy
        print(f"{relative(path)}: {done} translated, {fuzzy} fuzzy, {rest} missing")


def _catalogs(templates):
    """Yield language, path and template of every catalog that there should be."""
    for language in TRANSLATIONS:
        folder = LOCALES / language.gettext / "LC_MESSAGES"
        for page, template in templates.items():
            yield language, folder / f"{page}.po", template


def _check_catalog(path, template):
    name = relative(path)
    if not path.is_file():
        return [f"{name}: missing; run `make i18n-update` and translate it"]
    catalog = _read(path)
    findings = []
    for message in catalog:
        if not message.id:
            continue
        where = f"{name}:{message.lineno}"
        shown = str(message.id).replace("\n", " ")[:60]
        if template.get(message.id, message.context) is None:
            findings.append(
                f"{where}: not in the English text: {shown!r}; msgids are not edited "
                "by hand; run `make i18n-update`"
            )
        elif message.fuzzy:
            findings.append(f"{where}: fuzzy: {shown!r}; review it, remove the mark")
        elif not _is_translated(message):
            findings.append(f"{where}: not translated: {shown!r}")
    findings += [
        f"{name}: lacks {str(message.id)[:60]!r}; run `make i18n-update`"
        for message in template
        if message.id and catalog.get(message.id, message.context) is None
    ]
    return findings


def _is_translated(message):
    """Whether there is a text for each plural form, or for the only form."""
    texts = message.string if isinstance(message.string, tuple) else (message.string,)
    return all(texts)


def _read(path):
    try:
        with open(path, "rb") as file:
            catalog = read_po(file, abort_invalid=True)
    except (PoFileError, UnicodeDecodeError) as error:
        where = getattr(error, "lineno", None)
        line = f":{where + 1}" if where is not None else ""
        raise BuildError(f"{relative(path)}{line}: malformed catalog: {error}") from None
    for message in catalog:
        _take_over_previous_id(message)
    return catalog


def _take_over_previous_id(message):
    """Babel writes the msgid that a fuzzy text was for, and reads it as a comment."""
    previous = [x for x in message.user_comments if x.startswith("|")]
    if previous:
        kept = [x for x in message.user_comments if not x.startswith("|")]
        message.user_comments[:] = kept
        texts = re.findall(r'"(.*)"', "\n".join(previous))
        message.previous_id = [denormalize("\n".join(f'"{text}"' for text in texts))]


def _write(catalog):
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


COMMANDS = {"update": update, "check": check, "status": status}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    try:
        COMMANDS[sys.argv[1]]()
    except BuildError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
