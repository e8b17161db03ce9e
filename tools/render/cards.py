"""The pictures of link previews, which `make cards` draws."""

from ..project.languages import SOURCE_LANGUAGE
from ..project.paths import ROOT_FILES


def card(language):
    """Return the file name of a language's card, or of the source language's if it has none."""
    own = f"card-{language.url}.png"
    return own if (ROOT_FILES / own).is_file() else f"card-{SOURCE_LANGUAGE.url}.png"
