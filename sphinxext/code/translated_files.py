"""Translate the comments of files that readers download, and put the files into a zip file.

This module has no ``setup``: ``sample_downloads`` and ``project_downloads`` share it.
"""

import io
import zipfile
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from gettext import GNUTranslations
from pathlib import Path

from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx.application import Sphinx
from sphinx.util import logging

from ..translation.translatable_comments import paragraphs, translate

logger = logging.getLogger(__name__)

ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # The same bytes, whenever the file is made.


def zipped(folder: str, contents: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted(contents.items()):
            entry = zipfile.ZipInfo(f"{folder}/{name}", ZIP_EPOCH)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


@lru_cache(maxsize=1)  # Of this build: its samples share them.
def catalogs_of(app: Sphinx) -> dict[str, GNUTranslations]:
    """Return all catalogs of the language, by page."""
    catalogs = {}
    for locale_dir in app.config.locale_dirs:
        folder = Path(app.srcdir, locale_dir, app.config.language, "LC_MESSAGES")
        for path in sorted(folder.rglob("*.mo")):
            if path.with_suffix(".po").is_file():  # Not the rest of a catalog that was removed.
                with path.open("rb") as file:
                    name = path.relative_to(folder).with_suffix("").as_posix()
                    catalogs[name] = GNUTranslations(file)
    return catalogs


def gettext_of_comment(app: Sphinx, message: str) -> str:
    """Return the first translation that any catalog has, or the message."""
    for catalog in catalogs_of(app).values():
        if (translation := catalog.gettext(message)) != message:
            return translation
    return message


@cache
def language_of(suffix: str) -> str:
    try:
        return get_lexer_for_filename(f"file{suffix}").aliases[0]
    except (ClassNotFound, IndexError):
        return "none"


@cache  # Many samples share a file.
def comments_of(code: str, language: str) -> list[str]:
    return [message for *_, message in paragraphs(code, language)]


def translate_comments(
    code: str, language: str, gettext: Callable[[str], str], what: str, page: str | None = None
) -> str:
    """Return code with its comments translated; warn of ``what`` if the code would change."""
    pairs = ((x, gettext(x)) for x in comments_of(code, language))
    try:
        return _translate(code, language, tuple((x, y) for x, y in pairs if x != y))
    except ValueError as error:
        logger.warning("%s: %s", what, error, location=page)
        return code


@cache
def _translate(code: str, language: str, translated: tuple[tuple[str, str], ...]) -> str:
    return translate(code, language, dict(translated)) if translated else code
