"""The pictures that link previews show, which `make cards` draws."""

from ..project.languages import SOURCE_LANGUAGE
from ..project.paths import ROOT_FILES


def card(language):
    """The file name of a language's card; without one, that of the source language's."""
    own = f"card-{language.url}.png"
    return own if (ROOT_FILES / own).is_file() else f"card-{SOURCE_LANGUAGE.url}.png"
