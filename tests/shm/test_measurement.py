"""The measurement against gloo runs: a few of its cases, with few samples."""

import os

import psutil
import pytest
from c10d_conformance.hosts import why_not

from tools.measure.cases import Case, Setup
from tools.measure.ranks import measure
from tools.measure.summary import BACKENDS, NETWORKS
from tools.project.errors import BuildError


# Before other tests of this file start what hosts must not take with them when they end.
@pytest.mark.parametrize("network", ["two hosts", "TCP"])
def test_a_library_is_measured(network):
    if network == "two hosts" and (reason := why_not()):
        pytest.skip(reason)
    setup = Setup(2, [Case("all_reduce", 4)], NETWORKS[network], network=network)
    [medians] = measure(setup, rounds=1, limit=100)
    assert {*medians} == {"mpich", "gloo"} and all(time > 0 for time in medians.values())


class InItsOwnSession(Case):
    def call(self, group):
        assert os.getsid(0) == os.getpid()
        return super().call(group)


def test_every_backend_is_measured_by_ranks_in_their_own_sessions():
    cases = [
        InItsOwnSession("all_reduce", 4),
        Case("all_reduce, future", 2**16),
        Case("send and recv", 4),
        Case("step of DDP", 1000, "parameters"),
        Case("step of FSDP2", 1000, "parameters"),
    ]
    medians = measure(Setup(2, cases), rounds=1, limit=100)
    assert [set(times) for times in medians] == [set(BACKENDS)] * len(cases)
    assert all(time > 0 for times in medians for time in times.values())


@pytest.mark.parametrize(
    ("limit", "message"),
    [(100, "AssertionError"), (0.1, "0.1 s")],
    ids=["in one session", "after the time limit"],
)
def test_no_rank_outlives_a_failure(limit, message):
    before = set(psutil.Process().children())
    with pytest.raises(BuildError, match=message):
        measure(Setup(2, [InItsOwnSession("barrier", 0)], sessions=1), rounds=1, limit=limit)
    for process in set(psutil.Process().children()) - before:
        assert "resource_tracker" in " ".join(process.cmdline())  # multiprocessing's own
