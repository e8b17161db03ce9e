"""The search for an input that a backend gets wrong, and for the smallest one like it.

Hypothesis runs here, in the process of the suite, and not in the ranks: it must live on when a rank
crashes, and must not wait when one hangs. An example is plain data, so all ranks get the same one.
A round trip to two standing ranks of gloo takes 2 ms or more, and new ranks after a failure 0.3 s.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.configuration import set_hypothesis_home_dir

from c10d_conformance.settings import POLL, Settings
from c10d_conformance.verdicts import FAILURES, HANG, INIT, WRONG, Outcome, worst

# Runs after a bug's first failure, in which examples get smaller: a count and not a time, so that a
# busy machine finds the same. A hang, which takes the limit, counts as several.
SHRINKING = 200
HANGING = 50
# Of the limit, and of the time to poll: for an example like one that has failed after all of it.
SHORTER = 0.2


class Failure(Exception):
    """An example fails. Hypothesis takes failures of different classes for different bugs."""

    def __init__(self, example: Any, outcome: Outcome) -> None:
        super().__init__(outcome.text)
        self.example = example
        self.outcome = outcome


@dataclass
class Search:
    """One search: what the examples are drawn from, and how one is run."""

    settings: Settings
    strategy: Any  # of hypothesis
    run: Callable[[Any, float, float], Outcome]  # seconds: without progress, and of a poll

    def __post_init__(self) -> None:
        # A bug may show now and then only. Hypothesis asks again, and gets the first answer.
        self._outcomes: dict[Any, Outcome] = {}
        self._bugs: dict[tuple[str, str], type[Failure]] = {}  # by the verdict and the kind
        self._known: set[type[Failure]] = set()
        self._once: dict[type[Failure], Failure] = {}  # which did not fail again
        self._left = float("inf")  # runs
        self._failing: set[type[Failure]] = set()  # bugs that took all of their time
        self._hurried: set[Any] = set()  # examples whose poll was shorter
        self._start: Outcome | None = None  # which failed, so no example can be run
        self._is_new = self._was_new = False  # the ranks of the next example, and of the last one

    def outcomes(self) -> list[Outcome]:
        """Return the smallest failure of each bug, or else one outcome for all examples."""
        failures: list[Failure] = []
        while new := self._failures():  # without the bugs that are known, which hide others
            failures += new
            self._known |= {type(failure) for failure in new}
            self._left = float("inf")
        if self._start:
            return [self._start]
        failures += [once for bug, once in self._once.items() if bug not in self._known]
        tried = list(self._outcomes.values())
        if not failures:
            verdict = worst(outcome.verdict for outcome in tried)
            return [Outcome(f"{len(tried)} drawn examples", verdict, tried[0].text)]
        outcomes = []
        for failure in failures:
            outcome, again = failure.outcome, True
            if failure.example in self._hurried:
                slower = self._run(failure.example, POLL)
                again = slower.verdict == outcome.verdict
                outcome = slower if again else outcome
            outcome.name = str(failure.example)  # in full, which a board has no room for
            outcome.text += f"\nthe smallest of {len(tried)} examples, {self._how()}"
            if not again or type(failure) not in self._known:
                outcome.text += "\nnew ranks are right, so it needs the examples before, or luck"
            outcome.program = failure.example.program(self.settings)
            outcomes.append(outcome)
        return outcomes

    def _how(self) -> str:
        return f"--seed {self.settings.seed} --examples {self.settings.examples}"

    def _failures(self) -> list[Failure]:
        options = hypothesis.settings(
            max_examples=self.settings.examples,
            database=None,
            deadline=None,
            derandomize=False,
            phases=[Phase.generate, Phase.shrink],
            report_multiple_bugs=True,
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )
        attempt = hypothesis.given(self.strategy)(lambda example: self._attempt(example))
        with tempfile.TemporaryDirectory(prefix="c10d-") as folder:
            set_hypothesis_home_dir(folder)  # not the caller's
            try:
                hypothesis.seed(self.settings.seed)(options(attempt))()
            except Failure as failure:
                return [failure]
            except ExceptionGroup as group:
                failures, others = group.split(Failure)
                if others or not failures:
                    raise
                return [error for error in failures.exceptions if isinstance(error, Failure)]
            finally:
                set_hypothesis_home_dir(None)
        return []

    def _attempt(self, example: Any) -> None:
        """Raise a Failure if the example fails, unless its bug is known."""
        if example not in self._outcomes:
            if self._is_enough(example.kind):
                return
            poll = POLL
            if self._bug(WRONG, example.kind) in self._failing:
                self._hurried.add(example)
                poll *= SHORTER
            self._outcomes[example] = self._run(example, poll)
        outcome = self._outcomes[example]
        bug = self._bug(outcome.verdict, example.kind)
        if outcome.verdict in FAILURES and bug not in self._known:
            self._left = min(self._left, SHRINKING)
            self._failing.add(bug)
            raise bug(example, outcome)

    def _run(self, example: Any, poll: float) -> Outcome:
        """Return the outcome of an example: a failure only if it fails in new ranks, too.

        So the smallest one does not depend on what its ranks did before.
        """
        first = outcome = self._run_once(example, poll)
        if outcome.verdict in FAILURES and not self._was_new:
            outcome = self._run_once(example, poll)
        if first.verdict in FAILURES and outcome.verdict not in FAILURES:
            bug = self._bug(first.verdict, example.kind)
            self._once.setdefault(bug, bug(example, first))
        return outcome

    def _run_once(self, example: Any, poll: float) -> Outcome:
        hang = self._bug(HANG, example.kind)
        part = SHORTER if hang in self._failing else 1
        self._was_new = self._is_new
        outcome = self.run(example, self.settings.limit * part, poll)
        self._is_new = outcome.verdict in FAILURES  # which costs the ranks
        self._left -= HANGING if outcome.verdict == HANG else 1
        if outcome.verdict == HANG:
            self._failing.add(hang)
        if outcome.name == INIT:
            self._start = outcome
        return outcome

    def _is_enough(self, kind: str) -> bool:
        """Tell whether another example of a kind would take too long."""
        hangs = self._bug(HANG, kind) in self._known  # each costs the limit of a run
        return hangs or self._start is not None or self._left <= 0

    def _bug(self, verdict: str, kind: str) -> type[Failure]:
        new = type(f"{verdict} {kind}", (Failure,), {})
        return self._bugs.setdefault((verdict, kind), new)
