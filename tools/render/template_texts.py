"""The texts of templates in each language, for the pages that Sphinx does not make."""

from babel.messages.pofile import read_po

from ..project.paths import LOCALES


def gettext_of(language):
    """A function from an English text to the language's, or to itself."""
    path = LOCALES / language.gettext / "LC_MESSAGES" / "sphinx.po"
    if not path.is_file():
        return lambda text: text
    with open(path, "rb") as file:
        catalog = read_po(file, abort_invalid=True)

    def gettext(text):
        message = catalog.get(text)
        return message.string if message and message.string and not message.fuzzy else text

    return gettext
