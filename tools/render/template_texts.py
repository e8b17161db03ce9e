"""Translate texts of templates that Sphinx does not render."""

from sphinxext.translation.faithful_translations import is_as_harmless

from ..project.errors import BuildError
from ..project.languages import SOURCE_LANGUAGE
from ..project.paths import relative
from ..translate.catalogs import path_of, read


def gettext_of(language):
    """Return a function from an English text to its translation, or to itself.

    It raises BuildError for a translation that is dangerous in HTML, as Sphinx warns of it.
    """
    path = path_of(language, "sphinx")
    if language == SOURCE_LANGUAGE or not path.is_file():
        return lambda text: text
    catalog = read(path)

    def gettext(text):
        message = catalog.get(text)
        if not message or not message.string or message.fuzzy:
            return text
        if not is_as_harmless(message.string, text):
            raise BuildError(
                f"{relative(path)}:{message.lineno}: refused a translation with other HTML or "
                f"placeholders than {text!r}"
            )
        return message.string

    return gettext
