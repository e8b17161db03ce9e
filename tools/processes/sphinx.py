"""Run Sphinx, as every stage does."""

import re
import sys
from pathlib import Path

from ..project.errors import BuildError, readable
from ..project.languages import SOURCE_LANGUAGE, Language
from ..project.paths import DOCS, LOGS, ROOT, relative
from .run import run

TIMEOUT = 900  # seconds; a language takes about 60, and five times as long on a busy machine


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
        raise BuildError(f"{what} failed:\n{readable(original_names(done.text, f'{sources}/'))}")


def original_names(text: str, copies: str) -> str:
    """Return a text with the names of files in docs/ for those of their copies.

    The pages of samples are copies of none.
    """

    def original(copy: re.Match[str]) -> str:
        path = DOCS / copy[1]
        return relative(path) if path.is_file() else copy[0]

    return re.sub(rf"{re.escape(copies)}([\w./-]+)", original, text)
