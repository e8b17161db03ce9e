"""Run Sphinx, as every stage does."""

import re
import sys
import time
from contextlib import AbstractContextManager
from fnmatch import fnmatch
from pathlib import Path

from ..project.errors import BuildError, readable
from ..project.languages import SOURCE_LANGUAGE, Language
from ..project.paths import DOCS, GALLERY, LOGS, NO_PAGES, ROOT, relative
from .progress import progress
from .run import run

TIMEOUT = 900  # seconds; a language takes about 60
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
    """Show how many pages Sphinx has read and written from now on, over all of its runs.

    ``folders`` are those of the doctrees and of the output of each run.
    """
    started = time.time()
    files = [path.relative_to(sources) for path in sources.rglob("*")]
    pages = [x for x in files if x.suffix in SOURCES and not _is_no_page(x)]
    count = len(pages) * len(folders)

    def describe() -> str:
        read = sum(_count_new(doctrees, {".doctree"}, started) for doctrees, _ in folders)
        written = sum(_count_new(output, WRITTEN, started) for _, output in folders)
        # Those that Sphinx adds, such as the page of the search, are not among the pages.
        return f"{what}: {read} of {count} pages read, {min(written, count)} written"

    return progress(describe)


def _is_no_page(source: Path) -> bool:
    return any(fnmatch(source.parts[0], pattern) for pattern in NO_PAGES)


def _count_new(folder: Path, suffixes: set[str], since: float) -> int:
    files = (path for path in folder.rglob("*") if path.suffix in suffixes)
    return sum(path.stat().st_mtime >= since for path in files)


def original_names(text: str, copies: str) -> str:
    """Return a text with the names of files in docs/ for those of their copies.

    The page of a sample is a copy of none: its place is the sample, with the line of the page.
    """

    def original(copy: re.Match[str]) -> str:
        path, line = DOCS / copy[1], copy[2] or ""
        script = GALLERY / Path(copy[1].replace("-", "_")).with_suffix(".py")
        if path.is_file():
            return relative(path) + line
        return f"{relative(script)}, on its page{line}" if script.is_file() else copy[0]

    return re.sub(rf"{re.escape(copies)}([\w./-]+)(:\d+)?", original, text)
