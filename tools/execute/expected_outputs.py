"""Compare the outputs of the samples with the accepted and committed ones.

Beside each sample, the folder outputs/ holds a text file with everything that the sample
shows on its page: printed text and tables. The build fails if a run shows anything else. If
the output with a release of PyTorch differs from that with the default one, it is in a folder
with the name of the series, such as outputs/2.13.

A script names text that may differ from run to run in a comment of a hidden cell,
``output may differ in: <regular expression>``. Pages show the text that was printed.
"""

import difflib
import re

from ..project.errors import BuildError
from ..project.paths import EXECUTED, relative
from ..project.releases import current
from .samples import page_of

OUTPUTS = "outputs"
# sphinx-gallery's block for what was printed, and our own for tables.
SHOWN = re.compile(r"^( *)\.\. (?:code-block:: none|list-table::)\n((?:\1 +.*\n|\s*\n)*)", re.M)
PRINTED, TABLE = ".. rst-class:: sphx-glr-script-out", ":class: result-table\n"


def shown(page):
    """Return all that a sample has shown, in the order of its page (in reST)."""
    parts = []
    for found in SHOWN.finditer(page):
        before = page[: found.start()].rstrip()
        if TABLE in found[2] or before.endswith(PRINTED):
            lines = [line for line in found[2].splitlines() if not _is_option(line)]
            indent = min(len(x) - len(x.lstrip()) for x in lines if x.strip())
            parts.append("\n".join(line[indent:] for line in lines).strip("\n") + "\n")
    return "\n".join(parts)


def _is_option(line):
    return line.lstrip().startswith((":header-rows:", ":class:"))


def compare(script, page):
    """Raise BuildError with the differences, if there are any."""
    now = shown(page)
    last_run(script).write_text(now)
    file = committed(script)
    before = file.read_text() if file.is_file() else ""
    before, now = (comparable(script, text) for text in (before, now))
    if before == now:
        return
    difference = difflib.unified_diff(
        before.splitlines(),
        now.splitlines(),
        relative(file),
        "this run",
        lineterm="",
    )
    raise BuildError(
        f"{relative(script)}: the output differs from the accepted one:\n"
        + "\n".join(f"    {line}" for line in difference)
        + "\nIf the new output is right, accept it with `make accept-outputs`."
    )


def comparable(script, text):
    if allowed := re.search(r"^# output may differ in: (.+)$", script.read_text(), re.M):
        text = re.sub(allowed[1], "…", text, flags=re.M)
    return text


def last_run(script):
    return EXECUTED / f"{page_of(script)}.output"


def committed(script):
    """Return the file with the accepted output of a sample with this release."""
    own = of_release(script)
    return own if own.is_file() else of_default(script)


def files(script):
    """Return the committed file, in a list, or an empty list if there is none yet."""
    return [file for file in [committed(script)] if file.is_file()]


def of_default(script):
    return script.parent / OUTPUTS / f"{script.stem}.txt"


def of_release(script):
    return script.parent / OUTPUTS / current().series / f"{script.stem}.txt"
