"""Show one language in the browser, and follow each edit of its catalogs.

usage: python -m tools.preview LANGUAGE [PORT]

Needs neither PyTorch nor a compiler: samples that were never run are shown without
output. Works in _build/preview, and leaves the state of `make html` unchanged.
"""

import filecmp
import logging
import os
import re
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from io import StringIO
from pathlib import Path

from livereload import Server
from livereload.handlers import LiveReloadHandler
from livereload.watcher import Watcher
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import docutils_namespace, patch_docutils
from tornado.ioloop import PeriodicCallback

from .pages.sources import lay_out
from .processes import progress
from .processes.sphinx import counting_pages, original_names
from .project.editors import is_editors_file
from .project.errors import BuildError, readable, run_command
from .project.languages import LANGUAGES, SOURCE_LANGUAGE, Language
from .project.paths import BUILD, DOCS, GALLERY, LOCALES, ROOT, relative
from .project.ports import port_error, port_of
from .translate.catalogs import path_of
from .translate.laid_out import lay_out_catalogs

PREVIEW = BUILD / "preview"
FIRST_PORT = 8001
MENU_IS_OLD = 3  # The status of a build after which other pages show a title that was.


def main(name: str, port: str = "") -> None:
    languages = {language.gettext: language for language in LANGUAGES}
    if name not in languages:
        raise BuildError(f"name a language: make preview LANGUAGE={'|'.join(languages)}")
    with suppress(KeyboardInterrupt):
        preview(languages[name], _open_port(port_of(port)))


def preview(language: Language, port: int) -> None:
    site = Site(language)
    site.output.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / "LICENSE", site.output.parent / "license.txt")
    # The texts of the language and all sources; whatever it is, only what depends on it
    # is read again.
    watcher = EditWatcher([LOCALES / language.gettext, DOCS, GALLERY], site.build)
    with watcher.ended_with_this():
        watcher.build_once()
        LiveReloadHandler.DEFAULT_RELOAD_TIME = 0  # Follow an edit right after another, too.
        print(f"http://127.0.0.1:{port}/{language.url}/index.html follows your edits.")
        print("Stop with Ctrl-C.", flush=True)
        logging.getLogger("livereload").disabled = True
        logging.getLogger("tornado.access").disabled = True
        server = Server(watcher=watcher)
        server.serve(port=port, host="127.0.0.1", root=str(PREVIEW / "html"))


class EditWatcher(Watcher):
    """Looks five times a second whether there was an edit, and builds after each.

    A build has a process of its own, because Python and Sphinx keep each catalog that a process
    has read. An edit that comes while one runs is built after it.
    """

    def __init__(self, folders: list[Path], build: Callable[[bool], bool]) -> None:
        super().__init__()
        self.folders, self.build = folders, build
        self.seen = self._files()
        self.process: int | None = None
        self.menu_is_old = False

    def start(self, examine):
        PeriodicCallback(examine, 200).start()
        return True  # Or else livereload looks, and not as often.

    def examine(self):
        """Return what livereload wants: a path once it may load pages again, and no delay."""
        if self.process is not None:
            process, status = os.waitpid(self.process, os.WNOHANG)
            if process == 0:
                return None, None
            self.process = None
            self.menu_is_old |= os.waitstatus_to_exitcode(status) == MENU_IS_OLD
            self.filepath = "all"
            return self.filepath, None
        files = self._files()
        if files != self.seen:
            self.seen = files
            self._start_build()
        elif self.menu_is_old:
            self.menu_is_old = False
            self._start_build(all_pages=True)
        return None, None

    def build_once(self):
        _, status = os.waitpid(self._start_build(), 0)
        self.process = None
        self.menu_is_old = os.waitstatus_to_exitcode(status) == MENU_IS_OLD

    @contextmanager
    def ended_with_this(self) -> Iterator[None]:
        """End a build that still runs when the preview ends."""
        try:
            yield
        finally:
            if self.process is not None:
                os.killpg(self.process, signal.SIGKILL)
                os.waitpid(self.process, 0)
                progress.clear()

    def _start_build(self, all_pages: bool = False) -> int:
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            status = 1
            try:
                os.setpgid(0, 0)  # With the processes that Sphinx starts.
                status = MENU_IS_OLD if self.build(all_pages) else 0
            finally:
                sys.stdout.flush()
                os._exit(status)
        with suppress(OSError):  # The process may have done so already.
            os.setpgid(process, process)
        self.process = process
        return process

    def _files(self) -> dict[str, tuple[int, int]]:
        """Return when each file was changed, and its size."""
        files = {}
        for folder in self.folders:
            for place, folders, names in os.walk(folder):
                folders[:] = [name for name in folders if not is_editors_file(name)]
                for name in names:
                    if not is_editors_file(name) and not name.endswith(".mo"):
                        with suppress(OSError):  # It may be gone.
                            status = os.stat(f"{place}/{name}")
                            files[f"{place}/{name}"] = status.st_mtime_ns, status.st_size
        return files


class Site:
    """The pages of one language."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.output = PREVIEW / "html" / language.url  # Which the server reads.
        # Where Sphinx writes, page by page, each in several writes.
        self.built = PREVIEW / "built" / language.url
        self.doctrees = PREVIEW / "doctrees" / language.url
        self.catalogs = PREVIEW / "locales"
        self.sources = PREVIEW / "sources" / language.url
        # Where pages are before they are compared with those of the last build.
        self.laid_out = PREVIEW / "laid-out" / language.url
        # Is there while pages are written, and stays if that is cut short.
        self.unfinished = PREVIEW / f"unfinished-{language.url}"
        self.titles: dict[str, str] = {}

    def build(self, all_pages: bool) -> bool:
        """Build what has changed, or all; return whether other pages show a title that was."""
        started = time.monotonic()
        warnings = StringIO()
        try:
            menu_is_old = self._build(warnings, all_pages)
        except Exception as error:
            print(f"not built: {self._in_names(error)}", file=sys.stderr, flush=True)
            return False
        if text := self._in_names(warnings.getvalue()):
            print(text, file=sys.stderr, flush=True)
        print(f"built in {time.monotonic() - started:.1f} s", flush=True)
        return menu_is_old

    def _build(self, warnings: StringIO, all_pages: bool) -> bool:
        sources = self.sources / DOCS.name
        _bring_up_to_date(self.sources, lay_out(self.laid_out, executed=True).parent)
        is_translated = self.language != SOURCE_LANGUAGE
        changed = lay_out_catalogs(self.language, self.catalogs) if is_translated else set()
        # The texts around the pages are on each page, which Sphinx does not know.
        if "sphinx" in changed or self.unfinished.exists():
            shutil.rmtree(self.doctrees, ignore_errors=True)
        counting: AbstractContextManager[None] = nullcontext()
        are_all = all_pages or not self.doctrees.exists()
        if are_all:
            counting = counting_pages("building", sources, (self.doctrees, self.built))
        what = "all pages" if are_all else "the pages that have changed"
        print(f"building {what} …", flush=True)
        with counting, patch_docutils(ROOT), docutils_namespace():
            app = Sphinx(
                sources,
                ROOT,
                self.built,
                self.doctrees,
                "html",
                confoverrides={
                    "language": self.language.gettext,
                    "locale_dirs": [str(self.catalogs)] if is_translated else [],
                },
                status=None,
                warning=warnings,
                parallel=2,
            )
            app.connect("env-get-outdated", self._note_titles)
            self.unfinished.touch()
            app.build(force_all=all_pages)
            _bring_up_to_date(self.output, self.built)
            self.unfinished.unlink()
            return self.titles not in ({}, _titles(app.env))

    def _note_titles(self, app, env, *pages):
        self.titles = _titles(env)
        return []

    def _in_names(self, message: object) -> str:
        """Return what Sphinx says, with the names of the files that a translator edits."""
        text = readable(str(message).replace(str(self.catalogs), str(LOCALES)))
        copies = f"{relative(self.sources / DOCS.name)}/"
        lines = [
            self._in_catalog(line, copies) if "transla" in line else original_names(line, copies)
            for line in text.splitlines()
        ]
        return "\n".join(lines)

    def _in_catalog(self, line: str, copies: str) -> str:
        """Return what is said of a page as what is said of its catalog."""

        def catalog(match: re.Match[str]) -> str:
            return relative(path_of(self.language, match[1]))

        page = (
            rf"{re.escape(copies)}([\w./-]+)\.(?:md|rst)(?::\d+)?(?::<translated>)?(?::\d+)?(?=:)"
        )
        return re.sub(page, catalog, line)


def _titles(env: BuildEnvironment) -> dict[str, str]:
    """Return the title of each page, which the menu shows on all."""
    return {page: title.astext() for page, title in env.titles.items()}


def _bring_up_to_date(folder: Path, source: Path) -> None:
    """Make a folder as another is.

    What differs gets the time of now: an edit that was made while a page was read counts as new.
    It appears whole, for whoever asks the server for it meanwhile.
    """
    for place, folders, names in os.walk(source):
        target = folder / Path(place).relative_to(source)
        target.mkdir(parents=True, exist_ok=True)
        for name in set(os.listdir(target)) - {*folders, *names}:
            _remove(target / name)
        for name in folders + names:
            there, here = Path(place, name), target / name
            if there.is_symlink():
                _remove(here)
                here.symlink_to(there.readlink())
            elif there.is_file() and not (here.is_file() and filecmp.cmp(there, here, False)):
                unfinished = here.with_name(f"{name}.unfinished")
                shutil.copyfile(there, unfinished)
                unfinished.replace(here)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _open_port(choice: int | None) -> int:
    """Return the port of choice or, without one, the first or any that is free."""
    for port in [FIRST_PORT, 0] if choice is None else [choice]:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                reason = port_error(port, error)
                continue
            return probe.getsockname()[1]
    raise BuildError(reason)


if __name__ == "__main__":
    run_command(main, __doc__)
