"""How long each run takes a reader: the committed times, which the pages show.

Two builds of one commit show the same times, so a build does not measure them. Beside the time
of a sample, gallery/run_seconds.json has a digest of the code that was measured, because the
time is to be measured again when the code changes, and not when its texts or comments do.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from ..project.configuration import read
from ..project.paths import RUN_SECONDS, relative
from .samples import blocks_of, page_of, programs_of, samples

COMMENT = re.compile(r"^\s*#.*\n", re.M)


def entries() -> dict[str, dict[str, Any]]:
    """Return what the file has of each run: "seconds" and, of a sample, "code"."""
    return read(RUN_SECONDS, dict)


def by_name() -> dict[str, int]:
    """Return the time of each run, by its name."""
    return read(RUN_SECONDS, lambda file: {name: x["seconds"] for name, x in file.items()})


def write(entries: dict[str, dict[str, Any]]) -> None:
    lines = [f"  {json.dumps(name)}: {json.dumps(entries[name])}" for name in sorted(entries)]
    RUN_SECONDS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def code_of(script: Path) -> str:
    """Return a digest of the code of a sample and of its own programs."""
    texts = [source for kind, source in blocks_of(script) if kind == "code"]
    texts += [path.read_text() for path in programs_of(script)]
    code = "\n".join(COMMENT.sub("", text).strip() for text in texts)
    return hashlib.sha256(code.encode()).hexdigest()[:12]


def findings() -> list[str]:
    """Say which samples have no time."""
    measured = entries()
    return [
        f"{relative(script)}: has no time for readers; run `make run-times`"
        for script in samples()
        if page_of(script) not in measured
    ]
