"""Compare the outputs of the samples with the accepted and committed ones.

The folder of each sample holds output.txt with everything that the sample shows on its page:
printed text and tables. The build fails if a run shows anything else. If the output with a
release of PyTorch differs from that with the default one, it is in a file with the name of the
series, such as output-2.13.txt.

A script names text that may differ from run to run in a comment of a hidden cell,
``output may differ in: <regular expression>``. Pages show the text that was printed.
"""

import difflib
import re
from pathlib import Path

from ..project.errors import BuildError
from ..project.paths import EXECUTED, relative
from ..project.releases import current
from .samples import folder_of, page_of

# sphinx-gallery's block for what was printed, and our own for tables.
SHOWN = re.compile(r"^( *)\.\. (?:code-block:: none|list-table::)\n((?:\1 +.*\n|\s*\n)*)", re.M)
PRINTED, TABLE = ".. rst-class:: sphx-glr-script-out", ":class: result-table\n"


def outputs_on(page: str) -> str:
    """Return all that a sample has shown, in the order of its page (in reST)."""
    parts = []
    for block in SHOWN.finditer(page):
        before = page[: block.start()].rstrip()
        if TABLE in block[2] or before.endswith(PRINTED):
            lines = [line for line in block[2].splitlines() if not _is_option(line)]
            indent = min(len(x) - len(x.lstrip()) for x in lines if x.strip())
            parts.append("\n".join(line[indent:] for line in lines).strip("\n") + "\n")
    return "\n".join(parts)


def _is_option(line: str) -> bool:
    return line.lstrip().startswith((":header-rows:", ":class:"))


def compare(script: Path, page: str) -> None:
    """Raise BuildError with the differences, if there are any."""
    now = outputs_on(page)
    last_run(script).write_text(now)
    file = of_release(script) if of_release(script).is_file() else of_default(script)
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


def comparable(script: Path, text: str) -> str:
    """Return an output without what may differ from run to run."""
    if allowed := re.search(r"^# output may differ in: (.+)$", script.read_text(), re.M):
        text = re.sub(allowed[1], "…", text, flags=re.M)
    return text


def last_run(script: Path) -> Path:
    return EXECUTED / f"{page_of(script)}.output"


def accepted(script: Path) -> list[Path]:
    """Return the file with the accepted output for this release, or an empty list."""
    return [x for x in (of_release(script), of_default(script)) if x.is_file()][:1]


def of_default(script: Path) -> Path:
    return folder_of(script) / "output.txt"


def of_release(script: Path) -> Path:
    return folder_of(script) / f"output-{current().series}.txt"
