"""Records: values that the build keeps from one run to the next.

A record counts only for exactly the inputs that it was made from: it contains their digests, or
is found by them. A damaged record counts as missing.
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
    sphinxext/, another Python or other packages expire it. Without, the value depends only on
    the inputs that it names.
    """

    def __init__(self, path, *, of_tools=True):
        self.path, self.of_tools = path, of_tools

    def load(self):
        """Return the value that was saved last, or None."""
        try:
            digest_of_text, _, text = self.path.read_text().partition("\n")
        except (OSError, UnicodeDecodeError):
            return None
        return json.loads(text) if digest_of_text == self._digest(text) else None

    def save(self, value):
        text = json.dumps(value, ensure_ascii=False, sort_keys=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(f"{self._digest(text)}\n{text}")
        unfinished.replace(self.path)

    def forget(self):
        self.path.unlink(missing_ok=True)

    def note_made(self, key, outputs, **facts):
        """Record that the files ``outputs`` were made from the inputs of the digest ``key``."""
        self.save({"key": key, "made": digest(outputs), **facts})

    def is_made(self, key, outputs):
        """Return whether the files ``outputs`` are still those that were made for this ``key``."""
        if not all(path.is_file() for path in outputs):
            return False
        record = self.load()
        return bool(record) and record["key"] == key and record["made"] == digest(outputs)

    def _digest(self, text):
        made_by = _tools() if self.of_tools else ""
        return hashlib.sha256(f"{made_by}\n{text}".encode()).hexdigest()


@cache
def _tools():
    files = [path for name in TOOLS for path in files_below(ROOT / name)]
    return digest(files, sys.version, installed())


def record(name):
    """Return the record with a name that depends on the tools."""
    return Record(RECORDS / f"{name}.json")


class Results:
    """Results of one kind, each found by a digest of its inputs."""

    def __init__(self, name):
        self.record = record(name)
        self.last = self.record.load() or {}
        self.used = {}

    def get(self, key, make):
        """Return the result for a key; call ``make()`` if it is unknown."""
        if key not in self.used:
            self.used[key] = self.last[key] if key in self.last else make()
        return self.used[key]

    def save(self):
        """Save the results that were used, and drop the others."""
        if self.used != self.last:
            self.record.save(self.used)
