"""More pools, for checks that may run beside others because they mostly wait.

Two kinds do: those that wait for a timeout, whose times have wide margins, and those of drawn
inputs, where one that hangs takes the limit. The others measure, or need the processors, so they
run one by one. On an accelerator all do: what one check holds there, others share.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from c10d_conformance.registry import Check
from c10d_conformance.server import Answer, Server
from c10d_conformance.settings import Settings

if TYPE_CHECKING:
    from c10d_conformance.pool import Pool

FEWEST = 4  # checks for which a process is worth its start, which takes some seconds
AHEAD = 2  # checks that it has: it must not wait for one while this process is in a check

Key = tuple[str, int]  # of a check, and its ranks


class _Lane:
    """A server, and the checks that it may run, the next one last."""

    def __init__(self, server: Server, left: list[Key]) -> None:
        self.server = server
        self._left = left
        self._asked: list[Key] = []
        self._answers: dict[Key, Answer] = {}

    def feed(self) -> None:
        """Let the server have checks, and take the answers that are there."""
        while self._asked and self.server.has_answered():
            self._take()
        while self._left and len(self._asked) < AHEAD:
            self._asked.append(self._left.pop())
            self.server.ask(*self._asked[-1])

    def answer(self, key: Key) -> "Answer | None":
        """Return the answer if the server has the check. If not, it does not get it any more."""
        while key in self._asked:
            self._take()
            self.feed()
        if key in self._left:
            self._left.remove(key)
        return self._answers.pop(key, None)

    def _take(self) -> None:
        key = self._asked.pop(0)
        self._answers[key] = self.server.answer()


class Beside:
    """A pool, and servers that run some checks before their turn: one for each kind."""

    def __init__(self, pool: "Pool", settings: Settings) -> None:
        self._pool = pool
        self._settings = settings
        self._lanes: list[_Lane] = []

    def plan(self, checks: Iterable[tuple[Check, int]]) -> None:
        """Take the checks and world sizes of a run, in their order."""
        checks = list(checks)
        waiting = [(check.id, size) for check, size in checks if check.waits]
        drawn = [(check.id, size) for check, size in checks if check.examples]
        if self._settings.device == "cpu":
            # A server begins at the back, and this process at the front, until they meet.
            self._lanes = [
                _Lane(Server(self._settings), left)
                for left in (waiting, drawn)
                if len(left) >= FEWEST
            ]
        self._feed()

    def timed(self, check: Check, size: int) -> Answer:
        """Return the outcomes of a check with `size` ranks, and its seconds."""
        key = check.id, size
        self._feed()
        for lane in self._lanes:
            if answer := lane.answer(key):
                return answer
        return self._pool.timed(check, size)

    def close(self) -> None:
        """End the servers."""
        for lane in self._lanes:
            lane.server.stop()

    def _feed(self) -> None:
        for lane in self._lanes:
            lane.feed()
