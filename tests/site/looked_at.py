"""The pages that `make test` looks at in a browser: one of each kind, and those of a change.

A change is all since the commit SINCE: by default, since the branch left origin/main, and on that
branch itself the last commit. Each night `make test-audits` looks at all pages.
"""

import os
from functools import cache
from pathlib import PurePath

import pytest
from test_pages import PAGES

from tools.execute.samples import page_of, samples
from tools.project.git import changed_files, git
from tools.project.paths import ROOT, relative

OF_EACH_KIND = ["index", "search", "tutorial/index", "tutorial/step-1-subclass-backend"]
OF_EACH_KIND += ["operations/collectives", "communicate/measure", "tutorial/error-messages"]
# More are a change of everything, such as of a name: then these stand for the others.
MOST = 12

# For tests of pages: ``which`` is then an argument of pages().
EACH_NIGHT_ALL = pytest.mark.parametrize(
    "which", ["touched", pytest.param("all", marks=pytest.mark.audit)]
)


def pages(which, language):
    """Return the files of all pages of a language, or of those that `make test` looks at."""
    if which == "all":
        return PAGES
    changed = {f"{_page(path, language)}.html" for path in _changed_files()}
    touched = [name for name in PAGES if name in changed]
    few = touched[:: len(touched) // MOST + 1]
    return [name for name in PAGES if name in few or name.removesuffix(".html") in OF_EACH_KIND]


@cache
def _changed_files():
    since = os.environ.get("SINCE") or git("merge-base", "HEAD", "origin/main")
    if since in (None, git("rev-parse", "HEAD")):
        since = "HEAD~1"
    return [PurePath(relative(path)) for path in changed_files(ROOT, since)]


def _page(path, language):
    """Return the page that a file of the project is for, or its catalog in this language."""
    if path.suffix == ".md" and path.parts[0] == "docs":
        return PurePath(*path.parts[1:]).with_suffix("").as_posix()
    if path.suffix == ".po" and path.parts[1] == language.gettext:
        return PurePath(*path.parts[3:]).with_suffix("").as_posix()
    # A sample, or a file of its folder.
    return PAGE_OF.get(PurePath(*path.parts[:3]).with_suffix("").as_posix())


PAGE_OF = {relative(script.with_suffix("")): page_of(script) for script in samples()}
