"""The languages of the site, read from languages.toml."""

from dataclasses import dataclass

from .configuration import read
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


LANGUAGES = read(
    LANGUAGES_FILE, lambda file: tuple(Language(**entry) for entry in file["language"])
)
SOURCE_LANGUAGE = LANGUAGES[0]
TRANSLATIONS = LANGUAGES[1:]
