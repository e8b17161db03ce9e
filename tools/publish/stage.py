"""Stage "publish": replace the last site with the checked one, in one step."""

import ctypes
import filecmp
import os
import shutil
from pathlib import Path

from ..project.paths import BUILD, RENDERED, SITE

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # From Linux's <fcntl.h> and <linux/fs.h>.


def publish():
    """Copy _build/render and swap it with _build/html.

    A build that dies before the swap leaves the last good site as it was, and
    the swap is a single system call where the system has one.
    """
    new = BUILD / "html.new"
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(RENDERED, new, copy_function=_link_or_copy)
    if not SITE.exists():
        new.rename(SITE)
        return
    if not _exchange(new, SITE):
        old = BUILD / "html.old"
        shutil.rmtree(old, ignore_errors=True)
        SITE.rename(old)
        new.rename(SITE)
        new = old
    shutil.rmtree(new)


def _link_or_copy(source, target):
    """Link to the last site's file if it is equal, which is faster than a copy; or copy."""
    published = SITE / Path(source).relative_to(RENDERED)
    try:
        if filecmp.cmp(source, published, shallow=False):
            os.link(published, target)
            return
    except OSError:
        pass  # The file is new, or the file system knows no links.
    shutil.copy2(source, target)


def _exchange(one, other):
    """Swap two folders atomically; return whether the file system could."""
    one, other = os.fsencode(one), os.fsencode(other)
    renameat2 = ctypes.CDLL(None).renameat2
    return renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) == 0
