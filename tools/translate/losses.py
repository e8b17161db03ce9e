"""Translations of the last commit that a catalog has lost, as when its editor was ended.

Nothing in a file that was cut off between two messages says that it is no longer whole. The last
commit does: it has translations whose messages are now in no catalog of the language.
"""

from collections.abc import Callable
from pathlib import Path

from babel.messages.catalog import Message

from ..project.git import changed_files
from ..project.languages import Language
from ..project.paths import relative
from .catalogs import of_commit, read_all


def losses(language: Language, in_use: Callable[[], set[str]] | None = None) -> dict[Path, str]:
    """Return a fault for each catalog whose translations of messages ``in_use`` are gone.

    Without ``in_use``, messages count that the last commit has translated: if their text is gone
    since, an update has kept them as obsolete. A message without a translation is no loss: a
    translator may have emptied it.
    """
    if not (changed := changed_files(language.catalogs)):
        return {}
    catalogs = read_all(language).values()
    present = {entry.id for x in catalogs for entry in [*x, *x.obsolete.values()]}
    wanted = in_use() if in_use else None
    faults = {}
    for path in changed:
        name = relative(path)
        lost = [
            entry.id
            for entry in of_commit("HEAD", name)
            if entry.id and entry.string and entry.id not in present
            if (entry.id in wanted if wanted is not None else _is_kept(entry))
        ]
        if lost:
            faults[path] = (
                f"{name}:1: lacks {len(lost)} messages that the last commit has translated, "
                f"such as {lost[0][:60]!r}: get the file back with `git restore {name}`, or, "
                "if they shall go, commit it first"
            )
    return faults


def _is_kept(entry: Message) -> bool:
    """Return whether an update keeps an entry whose text is gone."""
    return not entry.fuzzy and entry.string != entry.id
