"""Add a language to the site.

LANGUAGE is named as gettext does: ja, pt_BR. Writes it into languages.toml, and makes its
catalogs. The switcher, the start page and the tests find it there. Until the line
``complete = false`` is removed, pages may be untranslated in part, and say so.
"""

from babel import Locale, UnknownLocaleError

from ..project.errors import BuildError
from ..project.languages import LANGUAGES, LANGUAGES_FILE

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
