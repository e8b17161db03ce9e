"""Medians and quartiles, the order of the backends, and the goals, for made-up samples."""

import pytest

from tools.measure.cases import Case, all_cases
from tools.measure.ranks import order
from tools.measure.summary import BACKENDS, GOALS, goals_table, line, quartiles, record


def made_up(case, ranks, gloo, shm=10e-6, floor=6e-6):
    """Return the record of a case in which every sample of a backend takes the same seconds."""
    return record(case, ranks, {"shm": [shm] * 3, "gloo": [gloo] * 3, "fake": [floor] * 3})


def test_quartiles_are_in_microseconds():
    assert quartiles([5e-6, 1e-6, 2e-6, 3e-6, 4e-6]) == {
        "median": 3,
        "lower_quartile": 2,
        "upper_quartile": 4,
        "samples": 5,
    }


def test_an_outlier_does_not_move_the_median():
    assert quartiles([1e-6, 1e-6, 1e-6, 1])["median"] == 1


def test_a_record_compares_medians():
    found = made_up(Case("barrier", 0), 2, gloo=250e-6)
    assert (found["ratio"], found["above_floor"]) == (25, 4)


def test_the_order_is_swapped_from_round_to_round():
    assert sorted(order(0)) == sorted(BACKENDS)
    assert order(1) == order(0)[::-1] and order(2) == order(0)


def test_no_case_is_measured_twice():
    assert len(set(all_cases())) == len(all_cases())


def test_every_goal_concerns_a_case():
    records = [made_up(case, ranks, gloo=1e-3) for case in all_cases() for ranks in (2, 4)]
    for goal in GOALS:
        assert goal.worst(records), goal
    assert "not met" not in goals_table(records)


@pytest.mark.parametrize(
    ("ranks", "times", "verdict"),
    [
        (2, {"gloo": 200e-6}, "met"),
        (2, {"gloo": 199e-6}, "not met"),
        (4, {"gloo": 199e-6}, "met"),  # a lower bound than with 2 ranks
        (2, {"gloo": 9e-3, "shm": 11e-6}, "met"),
        (2, {"gloo": 9e-3, "shm": 11.1e-6}, "not met"),  # 5.1 µs above the floor
    ],
)
def test_a_goal_is_met_up_to_its_bound(ranks, times, verdict):
    found = made_up(Case("all_reduce", 4), ranks, **times)
    verdicts = [goal.is_met_by(found) for goal in GOALS if goal.concerns(found)]
    assert all(verdicts) == (verdict == "met")


def test_the_worst_case_decides():
    records = [
        made_up(Case("all_reduce", 4), 2, gloo=300e-6),
        made_up(Case("all_reduce", 2**16), 2, gloo=100e-6),
    ]
    first = goals_table(records).splitlines()[1]
    assert first.split() == (
        "all_reduce up to 64 KiB 2 ≥ 20 10.00 not met all_reduce 64 KiB".split()
    )


def test_a_line_shows_medians_quartiles_and_the_ratio():
    found = made_up(Case("step of DDP", 4_000_000, "parameters"), 2, gloo=15e-6)
    text = line(found)
    assert "step of DDP" in text and "4 million" in text
    assert "shm      10.0 (10.0-10.0)" in text and text.endswith("gloo/shm   1.50")
