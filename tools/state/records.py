"""What the build remembers from one run to the next, in _build/records.

A record is only ever used for exactly what it was made from: it holds, or is found by,
digests of that. One that is damaged or missing, or that other tools have made, is as if
there had never been one.
"""

import hashlib
import json
import os
import sys

from ..project.paths import BUILD, ROOT
from .digests import digest, files_below, installed

RECORDS = BUILD / "records"
TOOLS = [path for name in ("tools", "sphinxext") for path in files_below(ROOT / name)]
MADE_BY = digest(TOOLS, sys.version, installed())


def load(name):
    """The record that was saved last under a name, or None."""
    try:
        written, _, text = (RECORDS / f"{name}.json").read_text().partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return json.loads(text) if written == _digest(text) else None


def save(name, record):
    text = json.dumps(record, ensure_ascii=False, sort_keys=True)
    path = RECORDS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(f"{_digest(text)}\n{text}")
    unfinished.replace(path)


def forget(name):
    (RECORDS / f"{name}.json").unlink(missing_ok=True)


def _digest(text):
    return hashlib.sha256(f"{MADE_BY}\n{text}".encode()).hexdigest()


class Results:
    """Results of one kind, each found by a digest of what it was made from."""

    def __init__(self, name):
        self.name = name
        self.known = load(name) or {}
        self.used = {}

    def get(self, key, make):
        """The result for a key; ``make()`` makes it, unless it is known."""
        if key not in self.used:
            self.used[key] = self.known[key] if key in self.known else make()
        return self.used[key]

    def save(self):
        """Keep what was used, and forget the rest."""
        if self.used != self.known:
            save(self.name, self.used)
