"""Run Sphinx, as every stage does."""

import re
import sys
from contextlib import AbstractContextManager
from fnmatch import fnmatch
from pathlib import Path

from ..project.errors import BuildError, readable
from ..project.languages import SOURCE_LANGUAGE, Language
from ..project.paths import DOCS, LOGS, NO_PAGES, ROOT, relative
from .progress import progress
from .run import run

TIMEOUT = 300  # seconds; a language takes about 60
SOURCES, WRITTEN = {".md", ".rst"}, {".html", ".pot"}


def run_sphinx(
    what: str,
    builder: str,
    language: Language,
    sources: Path,
    output: Path,
    *options: str | Path,
    doctrees: Path,
) -> None:
    """Run sphinx-build in a process of its own; a warning is an error.

    ``sources`` is a copy of docs/, and Sphinx keeps in ``doctrees`` what it has read. Raises
    BuildError, which says why ``what``, such as "rendering ko", failed, and names the files of
    docs/.
    """
    command: list[str | Path] = [sys.executable, "-m", "sphinx.cmd.build"]
    command += ["-q", "-W", "--keep-going", "-d", doctrees]
    command += ["-b", builder, "-c", ROOT, "-D", f"language={language.gettext}"]
    if language == SOURCE_LANGUAGE:
        command += ["-D", "locale_dirs=_nowhere"]  # Nothing may replace what is translated.
    log = LOGS / f"{what.replace(' ', '-')}.log"
    with counting_pages(what, sources, (doctrees, output)):
        done = run([*command, *options, sources, output], timeout=TIMEOUT, log=log)
    if done.timed_out:
        raise BuildError(f"{what} took longer than {TIMEOUT} s")
    if done.status != 0:
        raise BuildError(f"{what} failed:\n{readable(original_names(done.text, f'{sources}/'))}")


def counting_pages(
    what: str, sources: Path, *folders: tuple[Path, Path]
) -> AbstractContextManager[None]:
    """Show how many pages Sphinx has read and written, over all of its runs.

    Each run fills the ``folders`` of its doctrees and of its output, which are empty at first.
    """
    files = [path.relative_to(sources) for path in sources.rglob("*")]
    pages = [x for x in files if x.suffix in SOURCES and not _is_no_page(x)]
    count = len(pages) * len(folders)

    def describe() -> str:
        read = sum(len(list(doctrees.rglob("*.doctree"))) for doctrees, _ in folders)
        # Those that Sphinx adds, such as the page of the search, are not among the pages.
        written = sum(x.suffix in WRITTEN for _, output in folders for x in output.rglob("*"))
        return f"{what}: {read} of {count} pages read, {min(written, count)} written"

    return progress(describe)


def _is_no_page(source: Path) -> bool:
    return any(fnmatch(source.parts[0], pattern) for pattern in NO_PAGES)


def original_names(text: str, copies: str) -> str:
    """Return a text with the names of files in docs/ for those of their copies.

    The pages of samples are copies of none.
    """

    def original(copy: re.Match[str]) -> str:
        path = DOCS / copy[1]
        return relative(path) if path.is_file() else copy[0]

    return re.sub(rf"{re.escape(copies)}([\w./-]+)", original, text)
