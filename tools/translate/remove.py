"""Remove a language from the site: from languages.toml, with its catalogs and exemptions.

The history keeps its translations, so what is in no commit is not removed.
"""

import re
import shutil

from ..project.errors import BuildError
from ..project.git import committed_files
from ..project.languages import LANGUAGES_FILE, TRANSLATIONS, Language
from ..project.paths import LOCALES, relative
from . import catalogs, exemptions


def remove(gettext: str) -> None:
    """Remove a language. Raises BuildError if a translation would be lost, or for another name."""
    found = [language for language in TRANSLATIONS if language.gettext == gettext]
    if not found:
        names = "|".join(language.gettext for language in TRANSLATIONS)
        raise BuildError(f"name a translation: make i18n-remove LANGUAGE={names}")
    [language] = found
    folder = LOCALES / gettext
    if lost := _only_here(language):
        raise BuildError(
            f"{relative(folder)} has translations that no commit has, such as those of {lost[0]}: "
            "commit them first, or remove the folder yourself"
        )
    kept = [x for x in _entries() if not re.search(rf'^gettext = "{re.escape(gettext)}"$', x, re.M)]
    LANGUAGES_FILE.write_text("[[language]]".join(kept).rstrip() + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    if exemptions.FILE.is_file():
        rows = exemptions.FILE.read_text().splitlines(keepends=True)
        exemptions.FILE.write_text("".join(x for x in rows if not x.startswith(f"{gettext},")))
    print(
        f"Removed {language.name} ({gettext}) from {LANGUAGES_FILE.name}, with {relative(folder)}. "
        f"`git grep -w {gettext}` shows what else may name the language."
    )


def _entries() -> list[str]:
    """Return the parts of languages.toml, the comment at its top first."""
    return LANGUAGES_FILE.read_text().split("[[language]]")


def _only_here(language: Language) -> list[str]:
    """Return the catalogs with translations that the last commit does not have."""
    committed = set(committed_files(language.catalogs))
    return [
        relative(path)
        for path, catalog in catalogs.read_all(language).items()
        if path not in committed and _has_translations(catalog)
    ]


def _has_translations(catalog: catalogs.PageCatalog) -> bool:
    return any(x.id and x.string for x in [*catalog, *catalog.obsolete.values()])
