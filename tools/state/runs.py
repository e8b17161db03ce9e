"""Record runs that execute files, and tell later what a record proves."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

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
        record = self.record.load()
        return record["status"] if record and record["files"] == digest(self.files) else None

    @contextmanager
    def recorded(self, key: str = "", outputs: Callable[[], list[Path]] = list) -> Iterator[None]:
        """Record that the run has succeeded, unless the block raises.

        The record is of the files as they were before the block, and of the ``outputs`` that it
        has made from the inputs of the digest ``key``.
        """
        started, files = time.monotonic(), digest(self.files)
        yield
        self.record.note_made(
            key,
            outputs(),
            status=0,
            seconds=round(time.monotonic() - started, 1),
            ended=datetime.now(UTC).isoformat(timespec="seconds"),
            files=files,
        )
