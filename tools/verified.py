"""Say with what, and at which commit, the samples on the pages were run.

The versions are those that the stage "execute" noted; the commit is git's. What is not
known is left out: the versions before anything was executed, the commit of a copy of the
sources that has no history.
"""

import subprocess
from datetime import date

from .configuration import read
from .paths import ROOT, VERSIONS


def commit():
    """The commit that is checked out, its day and whether anything was changed, or None."""
    # Not that of a repository in which the sources merely lie.
    if _git("rev-parse", "--show-toplevel") != str(ROOT):
        return None
    if not (log := _git("log", "-1", "--format=%H %cs")):
        return None
    name, day = log.split()
    return name, day, bool(_git("status", "--porcelain"))


def shallow():
    """Whether the history is cut off; what is said of dates depends on it."""
    return _git("rev-parse", "--is-shallow-repository")


def facts(known_commit=None):
    """The versions, the commit and its day, and whether anything was changed since."""
    if not VERSIONS.is_file():
        return {}
    known = read(VERSIONS, dict)
    if current := known_commit or commit():
        known["commit"], known["date"], changed = current
        if changed:
            known["changed"] = "1"
    return known


def template_values(language, known_commit=None):
    """The values that the template verified.html shows, as texts in a language."""
    known = facts(known_commit)
    if "date" in known:
        from babel.dates import format_date  # It takes a moment.

        day = date.fromisoformat(known["date"])
        known["date"] = format_date(day, "long", locale=language.gettext)
    return {f"verified_{name}": value for name, value in known.items()}


def _git(*arguments):
    """What git prints; nothing without git, and outside a repository."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=30
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
