"""The range of the runs, the table as CSV, and its lines."""

import csv

from tools.measure.cases import Case, Setup, of_a_library
from tools.measure.machine import machine
from tools.measure.summary import as_csv, lines, rows


def made_up(case, ranks, gloo, shm=10, floor=6):
    """Return the rows of a case; `gloo` has the microseconds of its runs."""
    times = [{"fake": floor, "shm": shm, "gloo": time} for time in gloo]
    return rows(case, Setup(ranks, [case]), times)


def test_the_csv_file_has_the_machine_and_the_range_of_the_runs():
    table = made_up(Case("all_reduce, future", 4), 4, gloo=[250, 7000, 200.04, 300, 230])
    comment, *found = as_csv(table, machine()).splitlines()
    assert " machine with " in comment and " CPUs, " in comment
    row = list(csv.DictReader(found))[-1]
    assert (row["backend"], row["runs"]) == ("gloo", "5")
    assert (row["median"], row["lowest"], row["highest"]) == ("250", "200.0", "7000")


def test_a_line_shows_all_backends():
    [text] = lines(made_up(Case("step of DDP", 4_000_000, "parameters"), 2, gloo=[15, 9]))
    assert "2 ranks, 2 sessions  step of DDP" in text and "4 million" in text
    assert "shm      10.0 (10.0-10.0)" in text and "gloo      12.0 (9.0-15.0)" in text


def test_a_line_of_a_library_has_the_backends_of_its_network():
    setup = of_a_library()[-1]
    times = dict.fromkeys(setup.backends, 9)
    [text] = lines(rows(setup.cases[0], setup, [times]))
    assert text.startswith("4 ranks, two hosts  all_reduce") and "shm" not in text
