"""Record runs that execute files, and tell later what a record proves."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .digests import digest
from .records import Record


@dataclass(frozen=True)
class Run:
    """A program that ends with exit status 0 or fails the build, and the record of its last end.

    ``kind`` is "compile", "sample" or "command". ``files`` are all that the run executes or is
    made from. ``page`` is the one that a sample makes.
    """

    kind: str
    record: Record
    files: tuple[Path, ...]
    page: str | None = None

    @property
    def status(self) -> int | None:
        """The exit status of a recorded run of exactly these files, or None."""
        recorded = self.record.load()
        same = recorded and recorded["files"] == digest(self.files)
        return recorded["status"] if same else None


def success(files: str, seconds: float) -> dict[str, Any]:
    """Return the record of a run that has just ended with exit status 0 after ``seconds``.

    ``files`` is the digest, from before the run, of all files that the run executed.
    """
    return {
        "status": 0,
        "seconds": round(seconds, 1),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": files,
    }
