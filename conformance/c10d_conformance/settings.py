"""The settings of a run, which its modules share."""

import fnmatch
from dataclasses import dataclass, field

from c10d_conformance.registry import ACCELERATOR, CPU, STREAMS, Check


class Mistake(Exception):
    """The options cannot be carried out; the text says why."""


LIMIT = 10.0  # seconds without progress after which a case hangs
POLL = 1.0  # seconds in which is_completed() must become True
EXAMPLES = 50  # that a check of drawn inputs tries, which take some seconds if they are right


@dataclass(frozen=True)
class Settings:
    """The options of a run, in a form that another process can get."""

    backend: str
    module: str | None = None
    device: str = "cpu"
    blocking_wait: bool = False  # of a backend for accelerators
    ranks: tuple[int, ...] = (2,)
    hosts: int = 1  # more are simulated
    quick: bool = False
    limit: float = LIMIT
    seed: int = 0  # of drawn inputs
    examples: int = EXAMPLES
    skips: list[tuple[str, str]] = field(default_factory=list)  # a pattern, and the reason
    claims: dict[str, int] | None = None  # the right cases of each check that is run
    start: str = "--"  # of the names of options, for messages

    @property
    def host_waits(self) -> bool:
        """Tell whether wait() blocks the host until the operation has ended."""
        return self.device == "cpu" or self.blocking_wait

    def has(self, check: Check) -> bool:
        """Tell whether a check is for the device of the run."""
        if check.device == STREAMS:
            return not self.host_waits
        return check.device not in (CPU, ACCELERATOR) or (self.device == "cpu") == (
            check.device == CPU
        )

    def skip_reason(self, check: Check) -> str | None:
        """Return why a check is skipped, or None."""
        for pattern, reason in self.skips:
            if fnmatch.fnmatch(check.id, pattern):
                return reason
        return None
