"""Translate texts of templates that Sphinx does not render."""

from babel.messages.pofile import read_po


def gettext_of(language):
    """Return a function from an English text to its translation, or to itself."""
    path = language.catalogs / "sphinx.po"
    if not path.is_file():
        return lambda text: text
    with open(path, "rb") as file:
        catalog = read_po(file, abort_invalid=True)

    def gettext(text):
        message = catalog.get(text)
        return message.string if message and message.string and not message.fuzzy else text

    return gettext
