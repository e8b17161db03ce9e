"""The languages of the site, read from languages.toml."""

import tomllib
from dataclasses import dataclass

from .paths import ROOT


@dataclass(frozen=True)
class Language:
    gettext: str
    url: str
    html: str
    name: str


def _load():
    with open(ROOT / "languages.toml", "rb") as file:
        return tuple(Language(**entry) for entry in tomllib.load(file)["language"])


LANGUAGES = _load()
SOURCE_LANGUAGE = LANGUAGES[0]
TRANSLATIONS = LANGUAGES[1:]
