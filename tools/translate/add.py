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
{direction}complete = false
"""


# Modifiers of gettext that name a script; others, such as valencia, name a variant.
SCRIPTS = {"latin": "Latn", "cyrillic": "Cyrl", "devanagari": "Deva", "arabic": "Arab"}


def tag(gettext):
    """The value of a lang attribute for gettext's name of a language: sr@latin is sr-Latn."""
    name, _, modifier = gettext.partition("@")
    language, *territory = name.split("_")
    script = SCRIPTS.get(modifier)
    variant = modifier if modifier and not script else None
    return "-".join(filter(None, [language, script, *territory, variant]))


def add(gettext: str) -> None:
    if not gettext:
        raise BuildError("name a language: make i18n-add LANGUAGE=ja")
    if gettext in {language.gettext for language in LANGUAGES}:
        raise BuildError(f"{LANGUAGES_FILE.name} has {gettext} already")
    try:
        locale = Locale.parse(gettext)
    except (UnknownLocaleError, ValueError):
        raise BuildError(
            f"{gettext!r} is no language; name one as gettext does: ja, pt_BR"
        ) from None
    html = tag(gettext)
    is_rtl = locale.character_order == "right-to-left"
    entry = ENTRY.format(
        gettext=gettext,
        url=html.lower(),
        html=html,
        name=locale.get_display_name(),
        direction='direction = "rtl"\n' if is_rtl else "",
    )
    with open(LANGUAGES_FILE, "a", encoding="utf-8") as file:
        file.write(entry)
