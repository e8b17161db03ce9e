"""The first look of a build: has anything changed since the last good one?

It reads every file that the site is made from, what the stages left, and the site itself,
and imports next to nothing. So it finds what was edited, removed or damaged, anywhere.
"""

import sys

from ..compile.toolchain import compiled_with
from ..project import git
from ..project.paths import AUTO_GALLERY, EXECUTED, INSTALLED_EXTENSIONS, LOCALES, SITE
from ..state.digests import digest, files_below, installed, project_files
from ..state.records import record

RECORD = record("html")


def sources():
    """A digest of all that people edit, and of what compiles and runs it."""
    generated = set(files_below(AUTO_GALLERY))
    files = [path for path in project_files() if path not in generated]
    tools = [sys.version, installed(), *compiled_with()]
    return digest([*files, *files_below(LOCALES)], *tools, git.commit(), git.shallow())


def generated():
    """A digest of what the stages "compile" and "execute" made."""
    folders = AUTO_GALLERY, EXECUTED, INSTALLED_EXTENSIONS
    return digest([path for folder in folders for path in files_below(folder)])


def is_good(sources):
    """Whether the site is what the last good build made of the same sources."""
    known = RECORD.load()
    # An edit, the usual case, is found before anything else is read.
    return bool(known) and known["sources"] == sources and known == _state(sources, generated())


def forget():
    RECORD.forget()


def note(sources, generated):
    """Remember that the site is made of these."""
    RECORD.save(_state(sources, generated))


def _state(sources, generated):
    return {"sources": sources, "generated": generated, "site": digest(files_below(SITE))}
