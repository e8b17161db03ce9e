"""The settings of a run, which its modules share."""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, field

from c10d_conformance.hosts import Host
from c10d_conformance.registry import Check

LIMIT = 10.0  # seconds without progress after which a case hangs


@dataclass(frozen=True)
class Settings:
    """The options of a run, and the checks that it selects from."""

    backend: str
    module: str | None = None
    device: str = "cpu"
    ranks: tuple[int, ...] = (2,)
    hosts: Sequence[Host] = ()  # simulated ones; none: all ranks are on this one
    quick: bool = False
    limit: float = LIMIT
    skips: list[tuple[str, str]] = field(default_factory=list)  # a pattern, and the reason
    claims: dict[str, int] | None = None  # the right cases of each check that is run
    checks: list[Check] = field(default_factory=list)

    def skip_reason(self, check: Check) -> str | None:
        """Return why a check is skipped, or None."""
        for pattern, reason in self.skips:
            if fnmatch.fnmatch(check.id, pattern):
                return reason
        return None
