"""What the check finds and a maintainer has confirmed to be right: locales/exemptions.csv.

A row is for one language, one rule and the texts that the rule compared, of which it has a
digest. So it goes where its text goes, and is of no use when one of the texts has changed.
A catalog cannot exempt itself.
"""

import csv
import hashlib

from ..project.paths import LOCALES, relative

FILE = LOCALES / "exemptions.csv"
COLUMNS = ["language", "rule", "texts", "reason"]


class Exemptions:
    """The rows of the file, and which of them were used."""

    def __init__(self):
        self.findings, self.lines = [], {}
        if FILE.is_file():
            self._read()
        self.used = set()

    def _read(self):
        with open(FILE, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        if rows[:1] != [COLUMNS]:
            self._find(1, f"its first line must be {','.join(COLUMNS)}")
        for line, row in enumerate(rows[1:], start=2):
            if len(row) != len(COLUMNS) or not all(cell.strip() for cell in row):
                self._find(line, f"needs {len(COLUMNS)} cells, with a reason in the last")
            elif tuple(row[:3]) in self.lines:
                self._find(line, "is there twice; remove one")
            else:
                self.lines[tuple(row[:3])] = line

    def _find(self, line, what):
        self.findings.append(f"{relative(FILE)}:{line}: {what}")

    def allow(self, language, rule, texts):
        """Whether a finding is exempted."""
        row = (language.gettext, rule, digest_of(texts))
        self.used |= {row} & self.lines.keys()
        return row in self.lines

    def unused(self):
        """A finding for each row that exempts nothing."""
        return [
            f"{relative(FILE)}:{line}: {','.join(row)} exempts nothing any more; remove the line"
            for row, line in self.lines.items()
            if row not in self.used
        ]


def advice(language, rule, texts):
    """The line that would exempt a finding."""
    row = ",".join([language.gettext, rule, digest_of(texts), "REASON"])
    return f"or, if it is right, add to {relative(FILE)}:  {row}"


def digest_of(texts):
    """Digits that change with any of the texts, too many to find others with the same."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
