"""The measurement against gloo runs: a few of its cases, with few samples."""

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
    records = measure(2, CASES, rounds=3, limit=60)
    assert [(x["operation"], x["size"], x["unit"]) for x in records] == [
        (case.operation, case.size, case.unit) for case in CASES
    ]
    for found in records:
        assert found["ranks"] == 2 and set(found["microseconds"]) == set(BACKENDS)
        for times in found["microseconds"].values():
            assert times["samples"] == 3
            assert 0 < times["lower_quartile"] <= times["median"] <= times["upper_quartile"]


@pytest.mark.parametrize(
    ("operation", "limit", "message"),
    [("no such operation", 60, "KeyError: 'no such operation'"), ("barrier", 0.1, "0.1 s")],
    ids=["an error", "the time limit"],
)
def test_no_rank_outlives(operation, limit, message):
    before = set(psutil.Process().children())
    with pytest.raises(BuildError, match=message):
        measure(2, [Case(operation, 4)], rounds=3, limit=limit)
    for process in set(psutil.Process().children()) - before:
        assert "resource_tracker" in " ".join(process.cmdline())  # multiprocessing's own
