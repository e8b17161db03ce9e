"""From what each rank reports of a case to one of five verdicts."""

import dataclasses
import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

RIGHT, REFUSED, WRONG, CRASH, HANG = "right", "refused", "wrong", "crash", "hang"
VERDICTS = (RIGHT, REFUSED, WRONG, CRASH, HANG)
FAILURES = (WRONG, CRASH, HANG)

# States of a rank in a case, beside a verdict.
ABSENT = "absent"  # the rank has no part in the case
RAISED = "raised"  # an exception, which may be a refusal
UNREACHED = "not reached"

INIT = "init_process_group"  # the name of the case that is not one: the start of a group

# An exception is a refusal only if it says what is refused.
_SUBJECTS = (
    r"scalar ?type|dtype|data type|not support|unsupported|not implemented|does not|cannot|"
    r"no backend|must be|has to be|have to be|only|expected|requires|invalid|ReduceOp"
)
_NOT_MEANT = r"INTERNAL ASSERT|report a bug to PyTorch"


@dataclass(frozen=True)
class Status:
    """The end of one case in one rank."""

    kind: str
    text: str = ""
    trace: str = ""


@dataclass(frozen=True)
class CaseReport:
    """The report of one rank on one case: a line of the rank's log."""

    index: int  # of the case in its check, from 1
    name: str
    operation: str
    status: Status

    def write(self, log: int) -> None:
        """Add the line to an open file."""
        values = [self.index, self.name, self.operation, *dataclasses.astuple(self.status)]
        os.write(log, json.dumps(values).encode() + b"\n")

    @classmethod
    def read_all(cls, text: str) -> "dict[int, CaseReport]":
        """Return the reports of a log by their index, without a line that has no end."""
        reports = {}
        for line in text.splitlines():
            if line.endswith("]"):
                index, name, operation, *status = json.loads(line)
                reports[index] = cls(index, name, operation, Status(*status))
        return reports


@dataclass
class Outcome:
    """The verdict of one case, with the reports of the ranks if they are of interest."""

    name: str
    verdict: str
    text: str = ""
    statuses: list[Status] = field(default_factory=list)
    stacks: str = ""
    program: str = ""  # that shows a failure without the suite


def words(name: str) -> set[str]:
    """Return the forms in which an error may name an operation: all_reduce, allreduce, …"""
    base = name.lower().strip("_")
    forms = {base, base.replace("_", "")}
    if "single" in base:
        for ending in ("_into_tensor", "_tensor", "_base"):
            older = base.replace("_single", ending)
            forms |= {older, older.replace("all_", "all")}
    return forms


def is_clear(text: str, backend: str, operation: str) -> bool:
    """Tell whether an exception's text says what the backend does not do."""
    if not text.strip() or re.search(_NOT_MEANT, text):
        return False
    names = {backend.lower()} | words(operation)
    lower = text.lower()
    return any(name in lower for name in names) or bool(re.search(_SUBJECTS, text, re.I))


def judge(name: str, statuses: list[Status], backend: str, operation: str) -> Outcome:
    """Return the outcome of a case from the statuses of all ranks."""
    kinds = Counter(status.kind for status in statuses)
    taking_part = len(statuses) - kinds[ABSENT]
    for verdict in (CRASH, HANG, WRONG):
        if kinds[verdict]:
            text = next(status.text for status in statuses if status.kind == verdict)
            if verdict == HANG and kinds[RAISED]:
                # The others wait for the rank that raised, so its error comes first.
                rank = [status.kind for status in statuses].index(RAISED)
                text = f"rank {rank} raises, and another {text}: {statuses[rank].text}"
            return Outcome(name, verdict, text, statuses)
    if kinds[UNREACHED]:
        return Outcome(name, UNREACHED, "", statuses)
    if kinds[RAISED] == 0:
        return Outcome(name, RIGHT)
    first = next(status for status in statuses if status.kind == RAISED)
    if kinds[RAISED] < taking_part:
        text = "some ranks raise an exception and others return: " + first.text
        return Outcome(name, WRONG, text, statuses)
    unclear = [x for x in statuses if x.kind == RAISED and not is_clear(x.text, backend, operation)]
    if unclear:
        text = "the exception names neither the backend nor the operation: " + unclear[0].text
        return Outcome(name, WRONG, text, statuses)
    return Outcome(name, REFUSED, first.text, statuses)


def worst(verdicts: Iterable[str]) -> str:
    """Return the verdict of a whole check: a failure if there is one, else right, else refused."""
    counts = Counter(verdicts)
    for verdict in (CRASH, HANG, WRONG, RIGHT, REFUSED):
        if counts[verdict]:
            return verdict
    return UNREACHED


def stable(text: str) -> str:
    """Return a text without what differs from run to run: addresses, ports, process ids."""
    text = re.sub(r"0x[0-9a-f]+", "0x…", text)
    text = re.sub(r"(\[?[\d.:a-f]*\]?):\d{4,5}\b", r"\1:…", text)
    text = re.sub(r"/tmp/\S+", "/tmp/…", text)
    return re.sub(r"\b(pid|process|PID):? \d+", r"\1 …", text)
