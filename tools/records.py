"""What the build remembers from one run to the next, in _build/records.

A record is only ever used for exactly what it was made from: it holds, or is found by,
digests of that. One that is damaged or missing is as if there had never been one.
"""

import hashlib
import json
import os

from .digest import digest
from .paths import BUILD, ROOT

RECORDS = BUILD / "records"


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
    return hashlib.sha256(text.encode()).hexdigest()


class Results:
    """Results of one kind, each found by a digest of what it was made from.

    ``modules`` are the files of tools/ and sphinxext/ that make the results: a change of
    one of them, or of an installed package, makes all results worthless.
    """

    def __init__(self, name, *modules):
        self.name = name
        files = [ROOT / module for module in modules]
        self.made_by = digest([*files, ROOT / "requirements/render.txt"])
        saved = load(name) or {}
        self.known = saved["results"] if saved.get("made_by") == self.made_by else {}
        self.used = {}

    def get(self, key, make):
        """The result for a key; ``make()`` makes it, unless it is known."""
        if key not in self.used:
            self.used[key] = self.known[key] if key in self.known else make()
        return self.used[key]

    def save(self):
        """Keep what was used, and forget the rest."""
        if self.used != self.known:
            save(self.name, {"made_by": self.made_by, "results": self.used})
