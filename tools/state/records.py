"""What the build remembers from one run to the next.

A record is only ever used for exactly what it was made from: it holds, or is found by,
digests of that. One that is damaged or missing is as if there had never been one.
"""

import hashlib
import json
import os
import sys
from functools import cache

from ..project.paths import BUILD, ROOT
from .digests import digest, files_below, installed

RECORDS = BUILD / "records"
TOOLS = ("tools", "sphinxext")


class Record:
    """A value that JSON can express, in the file ``path``.

    With ``of_tools`` the value depends on the code that made it: an edit of tools/ or
    sphinxext/, another Python or other packages expire it. Without, it only depends on what
    it says itself.
    """

    def __init__(self, path, *, of_tools=True):
        self.path, self.of_tools = path, of_tools

    def load(self):
        """Return the value that was saved last, or None."""
        try:
            written, _, text = self.path.read_text().partition("\n")
        except (OSError, UnicodeDecodeError):
            return None
        return json.loads(text) if written == self._digest(text) else None

    def save(self, value):
        text = json.dumps(value, ensure_ascii=False, sort_keys=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(f"{self._digest(text)}\n{text}")
        unfinished.replace(self.path)

    def forget(self):
        self.path.unlink(missing_ok=True)

    def note_made(self, key, outputs, **facts):
        """Note that the files ``outputs`` were made from all that ``key`` is a digest of."""
        self.save({"key": key, "made": digest(outputs), **facts})

    def is_made(self, key, outputs):
        """Return whether the files ``outputs`` are still what was made for this ``key``."""
        if not all(path.is_file() for path in outputs):
            return False
        known = self.load()
        return bool(known) and known["key"] == key and known["made"] == digest(outputs)

    def _digest(self, text):
        made_by = _tools() if self.of_tools else ""
        return hashlib.sha256(f"{made_by}\n{text}".encode()).hexdigest()


@cache
def _tools():
    files = [path for name in TOOLS for path in files_below(ROOT / name)]
    return digest(files, sys.version, installed())


def record(name):
    """Return the record of the tools with a name."""
    return Record(RECORDS / f"{name}.json")


class Results:
    """Results of one kind, each found by a digest of what it was made from."""

    def __init__(self, name):
        self.record = record(name)
        self.known = self.record.load() or {}
        self.used = {}

    def get(self, key, make):
        """Return the result for a key; ``make()`` makes it, unless it is known."""
        if key not in self.used:
            self.used[key] = self.known[key] if key in self.known else make()
        return self.used[key]

    def save(self):
        """Keep what was used, and forget the rest."""
        if self.used != self.known:
            self.record.save(self.used)
