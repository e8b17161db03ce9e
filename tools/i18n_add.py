"""Add a language to the site.

usage: python -m tools.i18n_add LANGUAGE

LANGUAGE is named as gettext does: ja, pt_BR. Writes it into languages.toml, and makes its
catalogs. The switcher, the start page and the tests find it there. Until the line
``complete = false`` is removed, pages may be untranslated in part, and say so.
"""

import sys

from babel import Locale, UnknownLocaleError

from .errors import BuildError, ending_the_program
from .languages import LANGUAGES, LANGUAGES_FILE

ENTRY = """
[[language]]
gettext = "{gettext}"
url = "{url}"
html = "{html}"
name = "{name}"
complete = false
"""


def add(gettext):
    if gettext in {language.gettext for language in LANGUAGES}:
        raise BuildError(f"{LANGUAGES_FILE.name} has {gettext} already")
    try:
        locale = Locale.parse(gettext)
    except (UnknownLocaleError, ValueError):
        raise BuildError(
            f"{gettext!r} is no language; name one as gettext does: ja, pt_BR"
        ) from None
    html = gettext.replace("_", "-")
    entry = ENTRY.format(
        gettext=gettext, url=html.lower(), html=html, name=locale.get_display_name()
    )
    with open(LANGUAGES_FILE, "a", encoding="utf-8") as file:
        file.write(entry)


def main():
    if len(sys.argv) != 2 or not sys.argv[1]:
        sys.exit("error: name a language: make i18n-add LANGUAGE=ja")
    with ending_the_program():
        add(sys.argv[1])


if __name__ == "__main__":
    main()
