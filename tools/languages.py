"""The languages of the site, read from languages.toml."""

import tomllib
from dataclasses import dataclass

from .paths import ROOT

LANGUAGES_FILE = ROOT / "languages.toml"


@dataclass(frozen=True)
class Language:
    gettext: str
    url: str
    html: str
    name: str
    complete: bool = True


def _load():
    with open(LANGUAGES_FILE, "rb") as file:
        return tuple(Language(**entry) for entry in tomllib.load(file)["language"])


LANGUAGES = _load()
SOURCE_LANGUAGE = LANGUAGES[0]
TRANSLATIONS = LANGUAGES[1:]
