"""Each broken rule of streams shows a wrong result; the kept one shows the right result."""

import re

import pytest
from launcher import launch

from tools.project.paths import GALLERY

FOLDERS = GALLERY / "accelerators"
LATE = "deadlock: Backend simccl: all_reduce #1 .* has not ended within 1000 ms.*"
OVERLAPS = "begin all_reduce, begin mul, end mul, end all_reduce"
IN_A_ROW = "begin all_reduce, end all_reduce, begin mul, end mul"

# What each rank gets with the rule kept, and what with the rule broken.
PROGRAMS = {
    "input": (["3.0"] * 2, ["1.0", "2.0"]),
    "output": (["30.0"] * 2, ["10.0", "20.0"]),
    "lifetime": ([r"\[1.0, 2.0\]"] * 2, [r"\[99.0, 99.0\]"] * 2),
    "devices": (["30.0"] * 2, ["10.0", "20.0"]),
    "devices_in_ddp": (["1.5"] * 2, ["0.5", "1.0"]),
    "completion": (["30.0"] * 2, ["10.0", "20.0"]),
    "barrier": (
        ["written before the barrier"] * 2,
        ["written before the barrier", "the file is MISSING"],
    ),
    "own_stream": ([OVERLAPS, "late"], [IN_A_ROW, "late"]),
    "group_stream": ([r"\[2.0, 2.0\]"] * 2, [LATE] * 2),
    "order": ([r"\[2.0, 2.0\]"] * 2, [LATE] * 2),
    "other_stream": ([r"\[1.0, 2.0\]"] * 2, [r"\[99.0, 99.0\]"] * 2),
}


@pytest.fixture(autouse=True)
def beside_their_modules(monkeypatch):
    monkeypatch.chdir(FOLDERS)


def run(name):
    stderr = "Backend simccl: |.*Warning: Backend simccl: "
    (program,) = FOLDERS.glob(f"*/{name}.py")
    outputs = launch(program, ranks=2, expected_stderr=stderr, show=False)
    for output, kept, broken in zip(outputs, *PROGRAMS[name], strict=True):
        assert re.fullmatch(f"kept: {kept}\nbroken: {broken}\n", output), output


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rule(name):
    run(name)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rule_ten_times(name):
    for _ in range(10):
        run(name)
