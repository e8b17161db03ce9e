"""Who translated the site, from the headers of the catalogs."""

import re

from ..project.languages import TRANSLATIONS
from .catalogs import catalogs_of, text_and_header

# A name with an address or a year behind it, as gettext's tools and Weblate write it.
NAMED = re.compile(
    r"(?:translators?:\s*)?([^\d<>:,]*[^\W\d_][^\d<>:,]*?)\s*(?:<|,\s*\d{4}\b)", re.I
)


def translators() -> dict[str, list[str]]:
    """Return the names of each language's translators, without their addresses.

    A language of which nobody is named is left out.
    """
    names: dict[str, set[str]] = {}
    for language in TRANSLATIONS:
        for path in catalogs_of(language):
            header = text_and_header(path.read_bytes(), path)[1]
            for text in (*header.comments, header.credit("Last-Translator")):
                if match := NAMED.match(text.strip()):
                    names.setdefault(language.gettext, set()).add(match[1])
    return {language: sorted(of_language) for language, of_language in names.items()}
