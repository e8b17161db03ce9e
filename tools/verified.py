"""Say with what, and at which commit, the samples on the pages were run.

The versions are those that the stage "execute" noted; the commit is git's. What is not
known is left out: the versions before anything was executed, the commit of a copy of the
sources that has no history.
"""

import re
from datetime import date

from .configuration import read
from .git import git
from .paths import DOCS, LOCALES, ROOT, VERSIONS

TEMPLATES = DOCS / "_templates"
# Where a page names the commit; nothing else stands there.
PLACE = re.compile(r'(<span class="verified-at">).*?(</span>)', re.S)


def commit():
    """The commit that is checked out, its day and whether anything was changed, or None."""
    # Not that of a repository in which the sources merely lie.
    if git("rev-parse", "--show-toplevel") != str(ROOT):
        return None
    if not (log := git("log", "-1", "--format=%H %cs")):
        return None
    name, day = log.split()
    return name, day, bool(git("status", "--porcelain"))


def shallow():
    """Whether the history is cut off; what is said of dates depends on it."""
    return git("rev-parse", "--is-shallow-repository")


def versions():
    """With which versions the samples were run; nothing before all of them were."""
    return read(VERSIONS, dict) if VERSIONS.is_file() else {}


def facts():
    """The versions, the commit and its day, and whether anything was changed since."""
    known = versions()
    if known and (current := commit()):
        known["commit"], known["date"], changed = current
        if changed:
            known["changed"] = "1"
    return known


def template_values():
    """The values that the template verified.html shows."""
    return {f"verified_{name}": value for name, value in versions().items()}


def note_of(commit, language):
    """The text of verified_at.html on a commit, or none if that is not known."""
    if not commit:
        return ""
    import jinja2  # These take a moment.
    from babel.dates import format_date
    from babel.support import Translations

    from .site import PUBLISHED

    name, day, changed = commit
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), extensions=["jinja2.ext.i18n"]
    )
    # Those that Sphinx has compiled for the other templates.
    environment.install_gettext_translations(
        Translations.load(LOCALES, [language.gettext], "sphinx")
    )
    day = format_date(date.fromisoformat(day), "long", locale=language.gettext)
    template = environment.get_template("verified_at.html")
    return template.render(
        repository=PUBLISHED.repository, name=name, date=day, changed=changed
    )


def put_note(page, note):
    """A page with a note in the place of the last one."""
    return PLACE.sub(lambda found: found[1] + note + found[2], page)
