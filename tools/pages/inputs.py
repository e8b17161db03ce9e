"""Find the files that each page is made from: an edit then concerns some pages only."""

import re
import sys

from ..project.paths import DOCS, EXTENSIONS, GALLERY, LOCALES, ROOT, RUN_SECONDS
from ..state.digests import digest, files_below, installed, project_files
from . import provenance
from .downloads import downloads

PAGES = {".md", ".rst"}
# Files that a page may show, by their names.
SHOWN = {folder.relative_to(ROOT).parts[0] for folder in (LOCALES, GALLERY, *EXTENSIONS)}
NAMED = re.compile(rf"\b(?:{'|'.join(sorted(SHOWN))})/[\w/.-]*\w")


def digests():
    """Return digests: of "pages", by their names, and "shared", of all else but catalogs."""
    sources = {
        path.relative_to(DOCS).with_suffix("").as_posix(): path
        for path in files_below(DOCS)
        if path.suffix in PAGES and not path.relative_to(DOCS).parts[0].startswith("_")
    }
    taken_along = {page: x["files"].values() for page, x in downloads().items()}
    pages = {
        page: digest([path, *_named_files(path), *taken_along.get(page, [])])
        for page, path in sources.items()
    }
    programs = [path for folder in (GALLERY, *EXTENSIONS) for path in files_below(folder)]
    of_pages = {*sources.values(), *programs} - {RUN_SECONDS}
    shared = digest(
        [path for path in project_files() if path not in of_pages],
        *(sys.version, installed(), provenance.executed(), provenance.runs()),
    )
    return {"pages": pages, "shared": shared}


def changed(before, now):
    """Return the pages to read again, from two results of ``digests``; None means all pages."""
    if before["shared"] != now["shared"] or before["pages"].keys() != now["pages"].keys():
        return None
    return {x for x in now["pages"] if now["pages"][x] != before["pages"][x]}


def _named_files(source):
    """Return the files that a page names and may show, a catalog also in other languages."""
    names = sorted(set(NAMED.findall(source.read_text())))
    return [ROOT / name for name in names if (ROOT / name).is_file()]
