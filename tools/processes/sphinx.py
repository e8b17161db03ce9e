"""Run Sphinx, as every stage does."""

import re
import sys
from pathlib import Path

from ..project.errors import BuildError, readable
from ..project.languages import SOURCE_LANGUAGE, Language
from ..project.paths import DOCS, LOGS, ROOT, relative
from .run import run

TIMEOUT = 300  # seconds; a language takes about 60


def run_sphinx(
    what: str, builder: str, language: Language, sources: Path, output: Path, *options: str | Path
) -> None:
    """Run sphinx-build in a process of its own; a warning is an error.

    ``sources`` is a copy of docs/. Raises BuildError, which says why ``what``, such as
    "rendering ko", failed, and names the files of docs/.
    """
    command: list[str | Path] = [sys.executable, "-m", "sphinx.cmd.build"]
    command += ["-q", "-W", "--keep-going"]
    command += ["-b", builder, "-c", ROOT, "-D", f"language={language.gettext}"]
    if language == SOURCE_LANGUAGE:
        command += ["-D", "locale_dirs=_nowhere"]  # Nothing may replace what is translated.
    log = LOGS / f"{what.replace(' ', '-')}.log"
    done = run([*command, *options, sources, output], timeout=TIMEOUT, log=log)
    if done.timed_out:
        raise BuildError(f"{what} took longer than {TIMEOUT} s")
    if done.status != 0:
        text = re.sub(rf"{re.escape(str(sources))}/([\w./-]+)", _as_edited, done.text)
        raise BuildError(f"{what} failed:\n{readable(text)}")


def _as_edited(copy: re.Match[str]) -> str:
    """Return the name of the file in docs/; the pages of samples have none."""
    original = DOCS / copy[1]
    return relative(original) if original.is_file() else copy[0]
