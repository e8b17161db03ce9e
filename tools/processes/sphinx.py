"""Run Sphinx, as every stage does, and check what it needs."""

import sys
from pathlib import Path

from ..project.errors import BuildError, readable
from ..project.languages import SOURCE_LANGUAGE, Language
from ..project.paths import DOCS, LOGS, ROOT, relative
from ..state.digests import generated_pages
from .run import run

TIMEOUT = 300  # seconds; it takes about 5


def run_sphinx(
    what: str,
    builder: str,
    language: Language,
    output: Path,
    *options: str | Path,
    sources: Path = DOCS,
) -> None:
    """Run sphinx-build in a process of its own; a warning is an error.

    Raises BuildError, which says why ``what``, such as "rendering ko", failed.
    """
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "sphinx.cmd.build",
        "-q",
        "-W",
        "--keep-going",
    ]
    command += ["-b", builder, "-c", ROOT, "-D", f"language={language.gettext}"]
    if language == SOURCE_LANGUAGE:
        command += ["-D", "locale_dirs=_nowhere"]  # Nothing may replace what is translated.
    log = LOGS / f"{what.replace(' ', '-')}.log"
    done = run([*command, *options, sources, output], timeout=TIMEOUT, log=log)
    if done.timed_out:
        raise BuildError(f"{what} took longer than {TIMEOUT} s")
    if done.status != 0:
        raise BuildError(f"{what} failed:\n{readable(done.text)}")


def require_gallery_pages() -> None:
    """Raise BuildError if nothing was executed yet: pages link to the pages of samples."""
    if not generated_pages():
        raise BuildError(f"{relative(DOCS)}: no pages of samples: run `make execute` first")
