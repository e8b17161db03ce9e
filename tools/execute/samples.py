"""Which scripts of gallery/ are samples, and what each of them takes to run."""

import re
from functools import cache

from ..compile.extensions import EXTENSIONS
from ..project.paths import GALLERY
from ..state.digests import files_below

HELPERS = {"launcher.py", "result_table.py"}
CODE = {".py", ".cpp"}
NAMED = re.compile(r"\b(\w+)\.(?:py|cpp)\b|^\s*(?:from|import) (\w+)", re.M)


def samples():
    """The gallery scripts, in alphabetical order."""
    return sorted(path for path in GALLERY.glob("*.py") if path.name not in HELPERS)


def may_use(script, programs=None):
    """Return the files of gallery/ that a script names, and those that they name.

    These are more than it executes: a name in a comment counts, too. ``programs`` are all
    programs of gallery/, if they are known already.
    """
    candidates = set(programs or gallery_programs()) - {script}
    used, to_read = set(), [script]
    while to_read:
        names = _named_in(to_read.pop().read_text())
        named = {path for path in candidates - used if path.stem in names}
        used |= named
        to_read += named
    return sorted(used)


def gallery_programs():
    return [path for path in files_below(GALLERY) if path.suffix in CODE]


@cache  # Many samples use the same files.
def _named_in(code):
    """The programs and modules that are named in code, without .py or .cpp."""
    return {program or module for program, module in NAMED.findall(code)}


def may_use_extensions(script):
    """Return the extensions that a sample, or a program that it uses, names."""
    return extensions_in([script, *may_use(script)])


def extensions_in(files):
    return [extension for extension in EXTENSIONS if extension.is_named_in(files)]
