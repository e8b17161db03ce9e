"""The backend in process groups of two and four ranks, each in its own process.

The worker programs contain the assertions. A failed assertion fails its rank, and with it the
launch. The output of the ranks shows that each of them reached its end.
"""

from pathlib import Path

import pytest
from launcher import launch

WORKERS = Path(__file__).resolve().parent / "workers"


def run(worker, capsys, **options):
    """Return what the ranks wrote, without the command that started them."""
    launch(WORKERS / worker, **options)
    return capsys.readouterr().out.splitlines()[1:]


@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives(capsys, ranks):
    lines = run("collectives.py", capsys, ranks=ranks)
    assert lines == [
        line
        for rank in range(ranks)
        for line in [
            f"[rank {rank}] all_reduce: {rank + 1.0} became 0.0",
            f"[rank {rank}] all_gather: {[0.0] * ranks}",
            f"[rank {rank}] 3 groups, one after the other",
        ]
    ]


def test_groups_of_some_of_the_ranks(capsys):
    lines = run("sub_groups.py", capsys, ranks=4)
    assert lines == [
        "[rank 0] evens: 0.0, pair: 0.0, all: 0.0",
        "[rank 1] evens: 2.0, pair: 0.0, all: 0.0",
        "[rank 2] evens: 0.0, pair: 3.0, all: 0.0",
        "[rank 3] evens: 4.0, pair: 4.0, all: 0.0",
    ]


def test_gloo_and_the_dummy_side_by_side(capsys):
    lines = run(
        "beside_gloo.py",
        capsys,
        ranks=2,
        expected_stderr="No backend of type 0 found for Process Group",
    )
    assert lines == [f"[rank {rank}] gloo: 3.0, dummy: 0.0, gloo again: 3.0" for rank in range(2)]
