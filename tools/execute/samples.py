"""Find the samples in gallery/, the page of each, and the files that it needs.

A folder of gallery/ is a part of the site. Its scripts are samples. Modules that they share
with other parts are in gallery/ itself; a link in the folder lets scripts import them. A sample
that names c10d_conformance needs the whole project of that package, too.
"""

import re
from functools import cache

from ..compile.extensions import EXTENSIONS
from ..project.paths import DOCS, GALLERY, SUITE
from ..state.digests import files_below

CODE = {".py", ".cpp"}
SUITE_PACKAGE = "c10d_conformance"
# Not what an installation by hand leaves beside them.
SUITE_FILES = {SUITE_PACKAGE, "README.md", "pyproject.toml"}
USABLE = CODE | {".csv"}
NAMED = re.compile(r"\b(\w+)\.(?:py|cpp|csv)\b|^\s*(?:from|import) ([\w.]+)", re.M)


def samples():
    """Return the paths of all samples, in alphabetical order."""
    # By name: a copy of the project may have files in the place of links.
    shared = {path.name for path in GALLERY.glob("*.py")}
    return sorted(path for path in GALLERY.glob("*/*.py") if path.name not in shared)


def page_of(script):
    """Return the name of the page that is made from a sample, such as "overview/rpc"."""
    return f"{script.parent.name}/{script.stem.replace('_', '-')}"


def source_of(script):
    """Return the path of the page that the stage "execute" writes from a sample."""
    return DOCS / f"{page_of(script)}.rst"


def may_use(script):
    """Return the files of its folder that a sample names, and the files that these name.

    These may be more than the sample executes: a name in a comment counts, too. The suite of
    conformance/ is among them if a file names it.
    """
    candidates = {x for x in files_below(script.parent) if x.suffix in USABLE} - set(samples())
    used, to_read = set(), [script]
    while to_read:
        names = _named_in(to_read.pop().read_text())
        named = {path for path in candidates - used if path.stem in names}
        used |= named
        to_read += named
    if any(SUITE_PACKAGE in path.read_text() for path in (script, *used)):
        used |= {x for x in files_below(SUITE) if x.relative_to(SUITE).parts[0] in SUITE_FILES}
    return sorted(used)


@cache  # Many samples use the same files.
def _named_in(code):
    """Return the files and modules that code names, without their suffixes."""
    return {file or module.rpartition(".")[2] for file, module in NAMED.findall(code)}


def may_use_extensions(script):
    """Return the extensions that a sample, or a program that it uses, names."""
    return extensions_in([script, *may_use(script)])


def extensions_in(files):
    return [extension for extension in EXTENSIONS if extension.is_named_in(files)]
