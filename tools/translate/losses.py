"""Translations of the last commit that a catalog has lost, as when its editor was ended.

Nothing in a file that was cut off between two messages says that it is no longer whole. The last
commit does: it has translations whose messages are now in no catalog of the language.
"""

from collections.abc import Callable
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import PoFileError

from ..project.git import changed_files, git
from ..project.languages import Language
from ..project.paths import relative
from .catalogs import parse, read_all


def losses(language: Language, in_use: Callable[[], set[str]]) -> dict[Path, str]:
    """Return a fault for each catalog whose translations of messages ``in_use`` are gone.

    A message without a translation is no loss: a translator may have emptied it.
    """
    if not (changed := changed_files(language.catalogs)):
        return {}
    catalogs = read_all(language).values()
    wanted = in_use() - {entry.id for x in catalogs for entry in [*x, *x.obsolete.values()]}
    faults = {}
    for path in changed:
        name = relative(path)
        if lost := [x.id for x in _committed(name) if x.string and x.id in wanted]:
            faults[path] = (
                f"{name}:1: lacks {len(lost)} messages that the last commit has translated, "
                f"such as {lost[0][:60]!r}: get the file back with `git restore {name}`, or, "
                "if they shall go, commit it first"
            )
    return faults


def _committed(name: str) -> Catalog:
    try:
        return parse(git("show", f"HEAD:{name}") or "")
    except (PoFileError, ValueError):
        return Catalog()  # It was none.
