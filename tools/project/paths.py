"""Paths of the project."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

DOCS = ROOT / "docs"
# What is on no page; "decisions" is for maintainers.
NO_PAGES = ("_*", "decisions")
ROOT_FILES = DOCS / "_root"  # For the top of the site.
GALLERY = ROOT / "gallery"
LOCALES = ROOT / "locales"
RUN_SECONDS = GALLERY / "run_seconds.json"
# The lines on pages that no sample executes.
UNEXECUTED_LINES = GALLERY / "unexecuted_lines.json"
EXTENSIONS = tuple(sorted(path.parent for path in ROOT.glob("extension/*/setup.py")))
# What backends include as "frame/...", "store/..." and "streams/...", a Python project of its own.
FRAME = ROOT / "extension" / "frame"
FRAME_PACKAGE = FRAME / "c10d_frame"
HEADERS = FRAME_PACKAGE / "include"
SIMULATOR = FRAME_PACKAGE / "simulator"  # which no extension includes
# The suite that tests any backend, a Python project of its own.
SUITE = ROOT / "conformance"
# The accepted comparisons of a backend with gloo.
MEASUREMENTS = {
    "shm": ROOT / "extension" / "measurements.csv",
    "mpich": ROOT / "extension" / "measurements_of_mpich.csv",
}

BUILD = ROOT / "_build"
LOGS = BUILD / "logs"
# The last comparisons with gloo, in files of the same names.
MEASURED = BUILD / "bench-backend"
# The compiled extensions; the samples find them through PYTHONPATH.
INSTALLED_EXTENSIONS = BUILD / "extension"
# The record of the last execution of each sample.
EXECUTED = BUILD / "execute"
# The versions of the last whole execution.
VERSIONS = EXECUTED / "versions.json"
# The site while it is being made, and the published site.
RENDERED = BUILD / "render"
SITE = BUILD / "html"


def relative(path):
    """Return a path as messages show it: relative to the project."""
    return path.relative_to(ROOT).as_posix()
