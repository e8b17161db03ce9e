"""The measurement against gloo runs: a few of its cases, with few samples."""

import os

import psutil
import pytest

from tools.measure.cases import Case
from tools.measure.ranks import measure
from tools.measure.summary import BACKENDS
from tools.project.errors import BuildError

CASES = [
    Case("all_reduce", 4),
    Case("all_reduce, future", 2**16),
    Case("send and recv", 4),
    Case("step of DDP", 1000, "parameters"),
    Case("step of FSDP2", 1000, "parameters"),
]


def test_every_backend_is_measured():
    medians = measure(2, 2, CASES, rounds=3, limit=60)
    assert [set(times) for times in medians] == [set(BACKENDS)] * len(CASES)
    assert all(time > 0 for times in medians for time in times.values())


class InItsOwnSession(Case):
    def call(self, group):
        assert os.getsid(0) == os.getpid()
        return super().call(group)


def test_ranks_are_in_one_session_or_in_their_own():
    case = InItsOwnSession("barrier", 0)
    assert len(measure(2, 2, [case], rounds=1, limit=60)) == 1
    with pytest.raises(BuildError, match="AssertionError"):
        measure(2, 1, [case], rounds=1, limit=60)


@pytest.mark.parametrize(
    ("operation", "limit", "message"),
    [("no such operation", 60, "KeyError: 'no such operation'"), ("barrier", 0.1, "0.1 s")],
    ids=["an error", "the time limit"],
)
def test_no_rank_outlives(operation, limit, message):
    before = set(psutil.Process().children())
    with pytest.raises(BuildError, match=message):
        measure(2, 2, [Case(operation, 4)], rounds=3, limit=limit)
    for process in set(psutil.Process().children()) - before:
        assert "resource_tracker" in " ".join(process.cmdline())  # multiprocessing's own
