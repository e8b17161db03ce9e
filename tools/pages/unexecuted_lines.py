"""The lines on pages that no sample executes: pages highlight them.

`make test-lines` counts the lines that samples execute, and `make accept-lines` keeps those that
none has executed in gallery/unexecuted_lines.json: for each file, each of these lines after the
two lines before it. So a line is found again when others move it.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from ..project.configuration import read
from ..project.paths import BUILD, ROOT, UNEXECUTED_LINES

# What was counted last; `make accept-lines` keeps it.
COUNTED = BUILD / UNEXECUTED_LINES.name


def numbers() -> dict[str, list[int]]:
    """Return the numbers of the recorded lines in each file, as the file is now."""
    return {
        name: [number for number, line in _in_context(ROOT / name) if line in recorded]
        for name, recorded in read(UNEXECUTED_LINES, dict).items()
        if (ROOT / name).is_file()
    }


def write(path: Path, lines: Mapping[str, Collection[int]]) -> None:
    """Write a record of these lines of each file: the numbers that ``numbers`` then returns."""
    record = {
        name: [line for number, line in _in_context(ROOT / name) if number in lines[name]]
        for name in sorted(lines)
        if lines[name]
    }
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def _in_context(path: Path) -> Iterable[tuple[int, str]]:
    """Yield the number of each line of a file, and the line after the two before it."""
    lines = ["", "", *(line.strip() for line in path.read_text().splitlines())]
    for number in range(1, len(lines) - 1):
        yield number, "\n".join(lines[number - 1 : number + 2])
