"""Extract the messages of the English text: a catalog of msgids for each page.

Nothing needs to have been executed: the pages of samples are made from their scripts.
"""

import shutil
import sys
from importlib.resources import files
from pathlib import Path

from ..pages.sources import lay_out
from ..processes.sphinx import run_sphinx
from ..project.languages import SOURCE_LANGUAGE, TRANSLATIONS
from ..project.paths import BUILD, ROOT, ROOT_FILES
from ..state.digests import digest, files_below, installed, project_files
from ..state.records import record
from .catalogs import read, read_everything

EXTRACTION = BUILD / "gettext"
SOURCES = BUILD / "extraction"
DOCTREES = EXTRACTION / ".doctrees"
RECORD = record("messages")
TEMPLATES = [
    ROOT / "docs/_templates",
    ROOT_FILES,
    files("furo") / "theme" / "furo",
]


def extract():
    """Return a catalog of msgids for each page, by its path without suffix."""
    return {page: read(path) for page, path in extracted().items()}


def extracted():
    """Extract the messages, if anything in English has changed; return the files."""
    key = digest(project_files(), sys.version, installed())
    if not RECORD.is_made(key, files_below(EXTRACTION)):
        RECORD.forget()
        shutil.rmtree(EXTRACTION, ignore_errors=True)
        _extract()
        RECORD.note_made(key, files_below(EXTRACTION))
    return {
        path.relative_to(EXTRACTION).with_suffix("").as_posix(): path
        for path in sorted(EXTRACTION.rglob("*.pot"))
    }


def _extract():
    read_everything(TRANSLATIONS)  # Sphinx would show what is malformed with a traceback.
    templates = ",".join(str(folder) for folder in TEMPLATES)
    options: list[str | Path] = ["-D", f"templates_path={templates}"]
    sources = lay_out(SOURCES, executed=False)
    what = "extracting the messages"
    run_sphinx(what, "gettext", SOURCE_LANGUAGE, sources, EXTRACTION, *options, doctrees=DOCTREES)
