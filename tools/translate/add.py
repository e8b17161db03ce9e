"""Add a language to the site, and say what else it needs.

LANGUAGE is named as gettext does: ja, pt_BR. Writes it into languages.toml, and makes its
catalogs. The switcher, the start page and the tests find it there. Until the line
``complete = false`` is removed, pages may be untranslated in part, and say so.
"""

import re
import textwrap

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

# What no default can know. {0} is gettext's name of the language, {1} the first part of its
# addresses, {2} what its readers call it, and {3} gettext's name in lower case.
PLACES = {
    "To translate it": {
        "locales/{0}/LC_MESSAGES": "the translations. `make preview LANGUAGE={0}` shows each edit, "
        "`make i18n-check` what is wrong, and `make i18n-status` what is left",
        "docs/glossary.csv": "the terms: a column {0}, and avoid_{0} for words not to use. A term "
        "without a word yet may be empty",
        "TRANSLATING.md": "a paragraph on its style, below those of other languages",
        "tools/translate/rules/{3}.py": "its punctuation and grammar, for the check; "
        "`tools/translate/rules/__init__.py` says what the file may define",
    },
    "When pages can be read": {
        "sphinxext/search/static/search-words.js": "words that a search leaves out, endings, and "
        "synonyms",
        "docs/_styles/languages.css": "fonts and line breaks, if those of the browser are wrong",
        "docs/_root/card-{1}.png": "the picture of link previews, which `make cards` draws",
    },
    "When all is translated": {
        "languages.toml": "remove its line `complete = false`; the check then wants every message",
        "tests/site/search_queries.csv": "40 queries or more, with {1} in the first column",
        "README.md": "{2} among the languages in the first sentence",
        ".github/CODEOWNERS": "the team that reviews locales/{0}/",
    },
}

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


def needed(gettext: str) -> str:
    """Return the places that a new language needs, each with what to write there."""
    url, name = tag(gettext).lower(), named(gettext)[1].get_display_name()
    lines = [f"{name} ({gettext}) is on the site, in English until it is translated."]
    for when, places in PLACES.items():
        lines += ["", f"{when}:"]
        for place, what in places.items():
            place, what = (x.format(gettext, url, name, gettext.lower()) for x in (place, what))
            whole = re.sub("`.*?`", lambda match: match[0].replace(" ", "\xa0"), what)
            text = textwrap.fill(whole, 76, break_on_hyphens=False).replace("\xa0", " ")
            lines += [f"  {place}", textwrap.indent(text, " " * 6)]
    return "\n".join([*lines, "", f"To take it off the site: make i18n-remove LANGUAGE={gettext}"])


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
