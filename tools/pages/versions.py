"""Return the versions and the commit with which the samples on the pages were run.

The stage "execute" recorded the versions, and git knows the commit. Unknown values are left out:
the versions before anything was executed, and the commit of sources without a history.
"""

import re
from datetime import date

from babel.dates import format_date

from ..project.configuration import read
from ..project.git import commit
from ..project.languages import Language
from ..project.paths import VERSIONS

BETWEEN_DIGIT_AND_UNIT = re.compile(r"(?<=\d)(?=[年月日])|(?<=[年月])(?=\d)")


def versions():
    """Return the versions that the samples ran with; nothing before all of them ran."""
    return read(VERSIONS, dict) if VERSIONS.is_file() else {}


def facts():
    """Return the versions, the commit and its day, and whether anything has changed since."""
    values = versions()
    if values and (current := commit()):
        values["commit"], values["date"], changed = current
        if changed:
            values["changed"] = "1"
    return values


def template_values(language: Language) -> dict[str, str]:
    """Return what the template verified.html shows: the facts, with the day in the language."""
    values = facts()
    if day := values.get("date"):
        day = format_date(date.fromisoformat(day), "long", locale=language.gettext)
        if language.gettext.startswith("zh"):  # The guide for translators asks for spaces.
            day = BETWEEN_DIGIT_AND_UNIT.sub(" ", day)
        values["date"] = day
    return {f"verified_{name}": value for name, value in values.items()}
