"""The note at the foot of each page on the commit that the page was made from."""

import re
from datetime import date

import jinja2
from babel.dates import format_date

from ..project.paths import DOCS
from ..project.published import PUBLISHED
from .template_texts import gettext_of

TEMPLATES = DOCS / "_templates"
BETWEEN_DIGIT_AND_UNIT = re.compile(r"(?<=\d)(?=[年月日])|(?<=[年月])(?=\d)")


def commit_note(commit, language):
    """Return the text of verified_at.html on a commit, or an empty text if it is unknown."""
    if not commit:
        return ""
    name, day, changed = commit
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), extensions=["jinja2.ext.i18n"]
    )
    environment.install_gettext_callables(  # type: ignore[attr-defined]  # of the extension i18n
        gettext_of(language), None
    )
    day = format_date(date.fromisoformat(day), "long", locale=language.gettext)
    if language.gettext.startswith("zh"):  # The guide for translators asks for spaces.
        day = BETWEEN_DIGIT_AND_UNIT.sub(" ", day)
    template = environment.get_template("verified_at.html")
    return template.render(repository=PUBLISHED.repository, name=name, date=day, changed=changed)
