"""Findings of the check that a maintainer has confirmed to be right: locales/exemptions.csv.

A row is for one language, one rule and the texts that the rule compared, of which it has a
digest. So it goes where its text goes, and is of no use when one of the texts has changed.
A catalog cannot exempt itself.
"""

import csv
import hashlib

from ..project.languages import Language
from ..project.paths import LOCALES, relative

FILE = LOCALES / "exemptions.csv"
COLUMNS = ["language", "rule", "texts", "reason"]


class Exemptions:
    """The rows of the file with their lines, which of them were used, and its faults."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.lines: dict[tuple[str, ...], int] = {}
        self.used: set[tuple[str, ...]] = set()
        if FILE.is_file():
            self._read()

    def _read(self) -> None:
        with open(FILE, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        if rows[:1] != [COLUMNS]:
            self._add_fault(1, f"its first line must be {','.join(COLUMNS)}")
        for line, row in enumerate(rows[1:], start=2):
            if len(row) != len(COLUMNS) or not all(cell.strip() for cell in row):
                self._add_fault(line, f"needs {len(COLUMNS)} cells, with a reason in the last")
            elif tuple(row[:3]) in self.lines:
                self._add_fault(line, "is there twice; remove one")
            else:
                self.lines[tuple(row[:3])] = line

    def _add_fault(self, line: int, what: str) -> None:
        self.faults.append(f"{relative(FILE)}:{line}: {what}")

    def allow(self, language: Language, rule: str, texts: list[str]) -> bool:
        """Return whether a finding is exempted."""
        row = (language.gettext, rule, digest_of(texts))
        self.used |= {row} & self.lines.keys()
        return row in self.lines

    def unused(self) -> list[str]:
        """Return a fault for each row that exempts nothing."""
        return [
            f"{relative(FILE)}:{line}: {','.join(row)} exempts nothing any more; remove the line"
            for row, line in self.lines.items()
            if row not in self.used
        ]


def advice(language: Language, rule: str, texts: list[str]) -> str:
    """Return the line that would exempt a finding."""
    row = ",".join([language.gettext, rule, digest_of(texts), "REASON"])
    return f"or, if it is right, add to {relative(FILE)}:  {row}"


def digest_of(texts: list[str]) -> str:
    """Return digits that change with any of the texts, too many to find others with the same."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
