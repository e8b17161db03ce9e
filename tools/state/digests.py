"""Digests that tell whether the inputs of a stage have changed."""

import hashlib
import os
import re
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..project.paths import EXECUTED, ROOT

IGNORED = {"__pycache__"}
PINNING = ("render", "execute")  # requirements/
# At the top of the clone: nothing is made from these.
NO_SOURCES = {"_build", "locales", "tests", "README.md"}


def files_below(folder: Path) -> list[Path]:
    """Return all files below ``folder`` in a fixed order, without caches and *.mo."""
    paths: list[str] = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in IGNORED]
        paths += [os.path.join(place, name) for name in names if not name.endswith(".mo")]
    # Texts are compared faster than paths.
    return [Path(path) for path in sorted(paths) if os.path.isfile(path)]


def files_of(path: Path) -> list[Path]:
    """Return all files below a folder, as ``files_below`` does, or the file itself."""
    return files_below(path) if path.is_dir() else [path]


def project_files() -> Iterator[Path]:
    """Return all files that a page may be made from, except catalogs: whatever is in the clone."""
    for path in sorted(ROOT.iterdir()):
        if path.name not in NO_SOURCES and not path.name.startswith("."):
            yield from files_of(path)


def generated_pages() -> list[Path]:
    """Return the pages that the stage "execute" made."""
    return sorted(EXECUTED.glob("*/*.rst"))


def installed() -> list[str]:
    """Return the names and versions of the packages in .venv that a build of the site needs.

    Those for tests, which are installed later, change nothing in the site.
    """
    pinned = "\n".join((ROOT / f"requirements/{name}.txt").read_text() for name in PINNING)
    needed = {x.replace("-", "_").lower() for x in re.findall(r"^([\w-]+)==", pinned, re.M)}
    names = [path.name for path in Path(sysconfig.get_path("purelib")).glob("*-info")]
    return sorted(x for x in names if x.partition("-")[0].lower() in needed)


def digest(files: Iterable[Path], *facts: object) -> str:
    """Return a hex digest of the names and contents of ``files`` and of the ``facts``.

    It is the same in every clone: names are relative to the top of the clone.
    """
    total, top = hashlib.sha256(), f"{ROOT}{os.sep}"
    for file in files:
        name = str(file).removeprefix(top)  # Of another folder it is the whole path.
        total.update(f"{name}\0".encode())
        with open(file, "rb") as opened:
            total.update(hashlib.file_digest(opened, "sha256").digest())
    for fact in facts:
        total.update(f"{fact}\0".encode())
    return total.hexdigest()
