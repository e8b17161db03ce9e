"""Compare what the samples print with what was looked at and committed.

usage: python -m tools.outputs

For each sample, gallery/outputs holds a text file with all that it shows on its page:
printed text and tables. The build fails when a run shows anything else. Started as a
program, this takes over what the last run has shown. Where a release of PyTorch shows
something else than the default one, that is in a folder with the name of its series,
gallery/outputs/2.13 for one.

What may differ from run to run, a script names in a comment of a hidden cell,
``output may differ in: <regular expression>``. Pages show it as it was printed.
"""

import difflib
import re
import sys

from .errors import BuildError
from .paths import EXECUTED, OUTPUTS, relative
from .releases import DEFAULT, current
from .samples import samples

# sphinx-gallery's block for what was printed, and our own for tables.
SHOWN = re.compile(
    r"^( *)\.\. (?:code-block:: none|list-table::)\n((?:\1 +.*\n|\s*\n)*)", re.M
)
PRINTED, TABLE = ".. rst-class:: sphx-glr-script-out", ":class: result-table\n"


def shown(page):
    """All that a sample has shown, in the order of its page (in reST)."""
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
    _last_run(script).write_text(now)
    file = committed(script)
    before = file.read_text() if file.is_file() else ""
    before, now = (_comparable(script, text) for text in (before, now))
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
        f"{relative(script)}: shows something else than before:\n"
        + "\n".join(f"    {line}" for line in difference)
        + "\nIf that is right, take it over with `make accept-outputs`."
    )


def _comparable(script, text):
    if allowed := re.search(r"^# output may differ in: (.+)$", script.read_text(), re.M):
        text = re.sub(allowed[1], "…", text, flags=re.M)
    return text


def _last_run(script):
    return EXECUTED / f"{script.stem}.output"


def committed(script):
    """The file with what a sample showed, with this release, when it was last looked at."""
    of_release = _of_release(script)
    return of_release if of_release.is_file() else _of_default(script)


def _of_default(script):
    return OUTPUTS / f"{script.stem}.txt"


def _of_release(script):
    return OUTPUTS / current().series / f"{script.stem}.txt"


def accept():
    """Take over what was shown last; print the names of the files that change."""
    OUTPUTS.mkdir(exist_ok=True)
    for script in samples():
        if not _last_run(script).is_file():
            sys.exit(f"error: {relative(script)} was not run: run `make execute` first")
        now, default = _last_run(script).read_text(), _of_default(script)
        if current() == DEFAULT or not default.is_file():
            _write_if_other(default, now)
        elif _comparable(script, default.read_text()) != _comparable(script, now):
            _write_if_other(_of_release(script), now)
        elif _of_release(script).is_file():
            _remove(_of_release(script), "it shows what the default release shows")
    names = {script.stem for script in samples()}
    for path in sorted(OUTPUTS.rglob("*.txt")):
        if path.stem not in names:
            _remove(path, "there is no such sample")


def _remove(path, reason):
    path.unlink()
    print(f"removed {relative(path)}: {reason}")


def _write_if_other(path, text):
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        print(f"wrote {relative(path)}")


if __name__ == "__main__":
    accept()
