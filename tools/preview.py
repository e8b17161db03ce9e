"""Show one language in the browser, and follow each edit of its catalogs.

usage: python -m tools.preview LANGUAGE [PORT]

Needs neither PyTorch nor a compiler: samples that were never run are shown without
output. Works in _build/preview, and leaves the state of `make html` unchanged.
"""

import logging
import shutil
import socket
import sys
import time
from contextlib import suppress

from livereload import Server
from livereload.handlers import LiveReloadHandler
from livereload.watcher import Watcher
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.util.docutils import docutils_namespace, patch_docutils
from tornado.ioloop import PeriodicCallback

from .pages.sources import lay_out
from .project.errors import BuildError, run_command
from .project.languages import LANGUAGES, SOURCE_LANGUAGE, Language
from .project.paths import BUILD, DOCS, GALLERY, LOCALES, ROOT

PREVIEW = BUILD / "preview"
FIRST_PORT = 8001


def main(name: str, port: str = "") -> None:
    languages = {language.gettext: language for language in LANGUAGES}
    if name not in languages:
        raise BuildError(f"name a language: make preview LANGUAGE={'|'.join(languages)}")
    with suppress(KeyboardInterrupt):
        preview(languages[name], _open_port(int(port) if port else None))


def preview(language: Language, port: int) -> None:
    sources = lay_out(PREVIEW, executed=True)
    output = PREVIEW / "html" / language.url
    output.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / "LICENSE", output.parent / "license.txt")
    site = Site(language, sources, output)
    site.build()
    server = Server(watcher=QuickWatcher())
    # The texts of the language and all sources; whatever it is, only what depends on it
    # is read again.
    for folder in [LOCALES / language.gettext, DOCS, GALLERY]:
        server.watch(str(folder), site.build, ignore=_is_made_by_the_build)
    LiveReloadHandler.DEFAULT_RELOAD_TIME = 0  # Follow an edit right after another, too.
    print(f"http://127.0.0.1:{port}/{language.url}/index.html follows your edits.")
    print("Stop with Ctrl-C.", flush=True)
    logging.getLogger("livereload").disabled = True
    logging.getLogger("tornado.access").disabled = True
    server.serve(port=port, host="127.0.0.1", root=str(PREVIEW / "html"))


class QuickWatcher(Watcher):
    """Looks five times a second whether there was an edit."""

    def start(self, examine):
        PeriodicCallback(examine, 200).start()
        return True  # Or else livereload looks, and not as often.


class Site:
    """The pages of one language, built in this process, where all is loaded."""

    def __init__(self, language, sources, output):
        self.language, self.sources, self.output = language, sources, output
        self.overrides = {"language": language.gettext}
        if language == SOURCE_LANGUAGE:
            self.overrides["locale_dirs"] = []  # As run_sphinx does.

    def build(self):
        started = time.monotonic()
        doctrees = PREVIEW / "doctrees" / self.language.url
        try:
            shutil.copytree(DOCS, self.sources, dirs_exist_ok=True)
            with patch_docutils(ROOT), docutils_namespace():  # As if for the first time.
                app = Sphinx(
                    self.sources,
                    ROOT,
                    self.output,
                    doctrees,
                    "html",
                    confoverrides=self.overrides,
                    status=None,
                    # For a few pages, other processes are not worth their start.
                    parallel=1 if doctrees.is_dir() else 2,
                )
                app.build()
        except (SphinxError, OSError, ValueError) as error:
            print(f"not built: {error}", file=sys.stderr, flush=True)
        print(f"built in {time.monotonic() - started:.1f} s", flush=True)


def _is_made_by_the_build(path):
    return path.endswith(".mo")


def _open_port(choice: int | None) -> int:
    """Return the port of choice or, without one, the first or any that is free."""
    for port in [choice] if choice else [FIRST_PORT, 0]:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise BuildError(f"port {choice} is in use: name another, or none at all")


if __name__ == "__main__":
    run_command(main, __doc__)
