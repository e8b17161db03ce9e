"""The first look of a build: has anything changed since the last good one?

The look reads every file that the site is made from, the results of the stages, and the site
itself. So it finds what was edited, removed or damaged, anywhere. It imports next to nothing.
"""

import sys

from ..compile.toolchain import compiled_with
from ..project import git
from ..project.paths import EXECUTED, INSTALLED_EXTENSIONS, LOCALES, SITE
from ..state.digests import digest, files_below, installed, project_files
from ..state.records import record

RECORD = record("html")


def sources():
    """Return a digest of all sources, installed packages and the toolchain."""
    tools = [sys.version, installed(), *compiled_with()]
    files = [*project_files(), *files_below(LOCALES)]
    return digest(files, *tools, git.commit(), git.has_history())


def generated():
    """Return a digest of the results of the stages "compile" and "execute"."""
    return digest([*files_below(EXECUTED), *files_below(INSTALLED_EXTENSIONS)])


def is_good(sources):
    """Return whether the last good build made the site from the same sources."""
    state = RECORD.load()
    # An edit, the usual case, is found before anything else is read.
    return bool(state) and state["sources"] == sources and state == _state(sources, generated())


def forget():
    RECORD.forget()


def note(sources, generated):
    """Record that the site is made from these."""
    RECORD.save(_state(sources, generated))


def _state(sources, generated):
    return {"sources": sources, "generated": generated, "site": digest(files_below(SITE))}
