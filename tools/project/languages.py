"""The languages of the site, read from languages.toml."""

from dataclasses import dataclass

from .configuration import read
from .errors import BuildError
from .paths import LOCALES, ROOT

LANGUAGES_FILE = ROOT / "languages.toml"


@dataclass(frozen=True)
class Language:
    gettext: str
    url: str
    html: str
    name: str
    direction: str = "ltr"
    complete: bool = True

    @property
    def catalogs(self):
        """The folder of its message catalogs."""
        return LOCALES / self.gettext / "LC_MESSAGES"


def _languages(file: dict) -> tuple[Language, ...]:
    languages = tuple(Language(**entry) for entry in file["language"])
    for name in ("gettext", "url", "html"):
        values = [getattr(language, name).lower() for language in languages]
        for value in values:
            if values.count(value) > 1:
                raise BuildError(
                    f"{LANGUAGES_FILE.name}: two languages have the {name} {value}: remove one"
                )
    return languages


LANGUAGES = read(LANGUAGES_FILE, _languages)
SOURCE_LANGUAGE = LANGUAGES[0]
TRANSLATIONS = LANGUAGES[1:]
