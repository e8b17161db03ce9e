"""Return the versions and the commit with which the samples on the pages were run.

The stage "execute" recorded the versions, and git knows the commit. Unknown values are left out:
the versions before anything was executed, and the commit of sources without a history.
"""

from ..project.configuration import read
from ..project.git import commit
from ..project.paths import VERSIONS


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


def template_values():
    """Return the values that the template verified.html shows."""
    return {f"verified_{name}": value for name, value in versions().items()}
