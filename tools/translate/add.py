"""Add a language to the site.

LANGUAGE is named as gettext does: ja, pt_BR. Writes it into languages.toml, and makes its
catalogs. The switcher, the start page and the tests find it there. Until the line
``complete = false`` is removed, pages may be untranslated in part, and say so.
"""

import re

from babel import Locale, UnknownLocaleError

from ..project.errors import BuildError
from ..project.languages import LANGUAGES, LANGUAGES_FILE
from .names import SCRIPTS, VARIANTS, whole

ENTRY = """
[[language]]
gettext = "{gettext}"
url = "{url}"
html = "{html}"
name = "{name}"
{direction}complete = false
"""


# Language, script, territory, modifier.
NAME = re.compile(
    r"([a-z]{2,3})(?:[_-]([a-z]{4}))?(?:[_-]([a-z]{2}|\d{3}))?(?:@([a-z]+))?", re.I | re.A
)
EXAMPLE = "name one as gettext does: ja, pt_BR"


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
    spelled, locale = named(gettext)
    for language in LANGUAGES:
        if whole(language.gettext) == whole(spelled):
            raise BuildError(f"{LANGUAGES_FILE.name} has {language.gettext} already")
    if spelled != gettext:
        raise BuildError(f"gettext spells {gettext!r} {spelled}: write LANGUAGE={spelled}")
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


def named(text: str) -> tuple[str, Locale]:
    """Return gettext's spelling of the name of a language, and what Babel knows of it."""
    match = NAME.fullmatch(text)
    if match:
        language, script, territory, modifier = (part or "" for part in match.groups())
        modifier = modifier.lower()
        parts = language.lower(), script.title() or SCRIPTS.get(modifier, ""), territory.upper()
        try:
            locale = Locale.parse("_".join(filter(None, parts)))
        except (UnknownLocaleError, ValueError):
            locale = None
        if locale and modifier in {"", *SCRIPTS, *VARIANTS}:
            name = "_".join(filter(None, [locale.language, script.title(), territory.upper()]))
            return f"{name}@{modifier}" if modifier else name, locale
    raise BuildError(f"{text!r} is no language; {EXAMPLE}")
