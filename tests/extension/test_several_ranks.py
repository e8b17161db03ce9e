"""The backend in process groups of two and four ranks, each in its own process.

The worker programs contain the assertions. A failed assertion fails its rank, and with it the
launch. The output of the ranks shows that each of them reached its end.
"""

from pathlib import Path

from launcher import launch

WORKERS = Path(__file__).resolve().parent / "workers"


def run(worker, capsys, **options):
    """Return what the ranks wrote, without the command that started them."""
    launch(WORKERS / worker, **options)
    return capsys.readouterr().out.splitlines()[1:]


def test_collectives(capsys):
    lines = run("collectives.py", capsys, ranks=4)
    assert lines == [f"[rank {rank}] all_reduce: {rank + 1.0} became 0.0" for rank in range(4)]


def test_groups_of_some_of_the_ranks(capsys):
    lines = run("sub_groups.py", capsys, ranks=4)
    remaining = ["pair, all", "pair, all", "all", "all"]
    assert lines == [f"[rank {rank}] groups that remained: {x}" for rank, x in enumerate(remaining)]


def test_gloo_and_the_dummy_side_by_side(capsys):
    lines = run(
        "beside_gloo.py",
        capsys,
        ranks=2,
        expected_stderr="No backend of type 0 found for Process Group",
    )
    assert lines == [f"[rank {rank}] gloo: 3.0, dummy: 0.0, gloo again: 3.0" for rank in range(2)]
