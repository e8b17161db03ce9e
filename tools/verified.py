"""Say with what, and at which commit, the samples on the pages were run.

The versions are those that the stage "execute" noted; the commit is git's. What is not
known is left out: the versions before anything was executed, the commit of a copy of the
sources that has no history.
"""

import subprocess
from datetime import date

from babel.dates import format_date

from .configuration import read
from .paths import ROOT, VERSIONS


def template_values(language):
    """The values that the template verified.html shows, as texts in a language."""
    if not VERSIONS.is_file():
        return {}
    known = {f"verified_{name}": x for name, x in read(VERSIONS, dict).items()}
    # Not that of a repository in which the sources merely lie.
    if _git("rev-parse", "--show-toplevel") == str(ROOT):
        commit, day = _git("log", "-1", "--format=%H %cs").split()
        known["verified_commit"] = commit
        known["verified_date"] = format_date(
            date.fromisoformat(day), "long", locale=language.gettext
        )
        if _git("status", "--porcelain"):
            known["verified_changed"] = "1"
    return known


def _git(*arguments):
    """What git prints; nothing without git, and outside a repository."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=30
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
