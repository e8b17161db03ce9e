"""Extract the messages of the English text: a catalog of msgids for each page."""

import shutil
from importlib.util import find_spec
from pathlib import Path

from ..pages import inputs
from ..processes.sphinx import require_gallery_pages, run_sphinx
from ..project.languages import SOURCE_LANGUAGE
from ..project.paths import BUILD, ROOT, ROOT_FILES
from ..state.digests import digest, files_below
from ..state.records import record
from .catalogs import read

EXTRACTION = BUILD / "gettext"
DOCTREES = EXTRACTION / ".doctrees"
RECORD = record("messages")
TEMPLATES = [
    ROOT / "docs/_templates",
    ROOT_FILES,
    Path(find_spec("furo").origin).parent / "theme" / "furo",
]


def extract():
    """Return a catalog of msgids for each page, by its path without suffix."""
    return {page: read(path) for page, path in extracted().items()}


def extracted():
    """Extract the messages, if anything in English has changed; return the files.

    When only some pages have changed, Sphinx reads just these again.
    """
    require_gallery_pages()
    sources, known = inputs.digests(), RECORD.load()
    is_intact = known and known["made"] == digest(files_below(EXTRACTION))
    if not is_intact or known["sources"] != sources:
        RECORD.forget()
        changed = inputs.changed(known["sources"], sources) if is_intact else None
        if changed is None:
            shutil.rmtree(EXTRACTION, ignore_errors=True)
        else:
            for page in changed:
                (DOCTREES / f"{page}.doctree").unlink()
        _extract()
        made = digest(files_below(EXTRACTION))
        RECORD.save({"sources": sources, "made": made})
    return {
        path.relative_to(EXTRACTION).with_suffix("").as_posix(): path
        for path in sorted(EXTRACTION.rglob("*.pot"))
    }


def _extract():
    templates = ",".join(str(folder) for folder in TEMPLATES)
    options = ["-D", f"templates_path={templates}", "-d", DOCTREES]
    what = "extracting the messages"
    run_sphinx(what, "gettext", SOURCE_LANGUAGE, EXTRACTION, *options)
