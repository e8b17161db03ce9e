"""Record runs that execute files, and tell later what a record proves."""

from datetime import UTC, datetime

from ..project.paths import relative
from .digests import digest


def digests_of(files):
    """Return a digest of each file, by its path as messages name it."""
    return {relative(path): digest([path]) for path in files}


def ended_well(files, seconds):
    """Return the record of a run that has just ended with exit status 0.

    ``files`` are the digests, from before the run, of all files that the run executed or was
    made from. ``seconds`` is how long the run took.
    """
    return {
        "status": 0,
        "seconds": round(seconds, 1),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": files,
    }


def status(recorded, files):
    """Return the exit status of a recorded run of exactly these ``files``, or None.

    ``recorded`` is the record of the run, or None. A run of other contents does not count.
    """
    if not recorded:
        return None
    same = digests_of(files).items() <= recorded["files"].items()
    return recorded["status"] if same else None
