"""The names of languages: what one in gettext's spelling leaves out."""

from babel.core import get_global

# Modifiers of gettext that name a script; others name a variant.
SCRIPTS = {"latin": "Latn", "cyrillic": "Cyrl", "devanagari": "Deva", "arabic": "Arab"}
VARIANTS = {"valencia", "tarask"}


def whole(gettext: str) -> tuple[str, str | None, str | None, str | None]:
    """Return language, script, territory and variant of a name, also those that it leaves out.

    They are the same for zh_CN, zh and zh_Hans.
    """
    name, _, modifier = gettext.partition("@")
    language, *parts = name.split("_")
    script = next((x for x in parts if len(x) == 4), SCRIPTS.get(modifier))
    territory = next((x for x in parts if len(x) < 4), None)
    likely = get_global("likely_subtags")
    for known in ((script, territory), (None, territory), (script, None), (None, None)):
        if whole_name := likely.get("_".join(filter(None, [language, *known]))):
            language, likely_script, likely_territory = whole_name.split("_")[:3]
            script, territory = script or likely_script, territory or likely_territory
            break
    return language, script, territory, modifier if modifier in VARIANTS else None
