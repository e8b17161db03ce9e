"""Say with what, and at which commit, the samples on the pages were run.

The versions are those that the stage "execute" noted; the commit is git's. What is not
known is left out: the versions before anything was executed, the commit of a copy of the
sources that has no history.
"""

from ..project.configuration import read
from ..project.git import commit
from ..project.paths import VERSIONS


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
