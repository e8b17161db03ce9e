"""Stage "publish": replace the last site with the checked one, in one step."""

import ctypes
import os
import shutil
from pathlib import Path

from ..project.paths import BUILD, RENDERED, SITE

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # From Linux's <fcntl.h> and <linux/fs.h>.


def publish() -> None:
    """Copy _build/render and swap it with _build/html.

    A build that dies before the swap leaves the last good site as it was. The swap is a single
    system call if the file system supports it.
    """
    new, old = BUILD / "html.new", BUILD / "html.old"
    for folder in (new, old):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(RENDERED, new)
    if not SITE.exists():
        new.rename(SITE)
    elif _exchange(new, SITE):
        shutil.rmtree(new)
    else:
        SITE.rename(old)
        new.rename(SITE)
        shutil.rmtree(old)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders atomically; return whether the file system could."""
    renameat2 = ctypes.CDLL(None).renameat2
    paths = os.fsencode(one), os.fsencode(other)
    return renameat2(AT_FDCWD, paths[0], AT_FDCWD, paths[1], RENAME_EXCHANGE) == 0
