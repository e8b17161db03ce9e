"""The search for inputs that fail, with answers in place of ranks, and the programs it gives."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest
import torch
from c10d_conformance import registry
from c10d_conformance import search as search_module
from c10d_conformance.checks.generated import Limit
from c10d_conformance.search import Search
from c10d_conformance.settings import POLL, Settings
from c10d_conformance.verdicts import CRASH, HANG, INIT, REFUSED, RIGHT, WRONG, Outcome
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

CHECKS = [check for check in registry.load() if check.examples]


@dataclasses.dataclass(frozen=True)
class Number:
    """An example: a number, and whether it is an odd one."""

    value: int

    def __str__(self):
        return f"number {self.value}"

    @property
    def kind(self):
        return "odd" if self.value % 2 else ""

    def program(self, settings):
        return f"program {self.value}"


def search(verdict, **options):
    """Return the outcomes of a search, and the numbers that it tried, for `verdict(number)`."""
    tried = []

    def run(example, limit, poll):
        tried.append(example.value)
        return Outcome(str(example), verdict(example.value), "a text")

    numbers = st.builds(Number, st.integers(0, 1000))
    return Search(Settings("gloo", **options), numbers, run).outcomes(), tried


def test_right_and_refused_inputs_are_one_case():
    outcomes, tried = search(lambda number: REFUSED if number % 2 else RIGHT)
    assert [outcome.verdict for outcome in outcomes] == [RIGHT]
    assert outcomes[0].name == f"{len(tried)} drawn examples" and len(tried) == len(set(tried))
    outcomes, _ = search(lambda number: REFUSED)
    assert [(outcome.verdict, outcome.text) for outcome in outcomes] == [(REFUSED, "a text")]


def test_each_bug_has_its_smallest_input():
    def verdict(number):
        return WRONG if number >= 100 else RIGHT

    outcomes, _ = search(verdict, seed=3)
    assert {outcome.name for outcome in outcomes} == {"number 100", "number 101"}
    assert {outcome.program for outcome in outcomes} == {"program 100", "program 101"}
    assert all("--seed 3 --examples 50" in outcome.text for outcome in outcomes)


def test_a_bug_that_always_shows_does_not_hide_a_rare_one():
    outcomes, _ = search(lambda number: WRONG if number < 900 else CRASH if number > 990 else RIGHT)
    assert {CRASH, WRONG} == {outcome.verdict for outcome in outcomes}


def test_a_seed_draws_the_same_inputs_again():
    first, again, other = (search(lambda number: RIGHT, seed=n)[1] for n in (1, 1, 2))
    assert first == again != other
    assert len(search(lambda number: RIGHT, examples=7)[1]) == 7


def test_a_failure_that_new_ranks_do_not_have_is_reported_as_such():
    failed = []

    def verdict(number):
        if number > 500 and not failed:
            failed.append(number)
            return WRONG
        return RIGHT

    outcomes, _ = search(verdict)
    assert [outcome.name for outcome in outcomes] == [f"number {failed[0]}"]
    assert "new ranks are right" in outcomes[0].text and outcomes[0].program


def test_inputs_get_smaller_in_a_limited_number_of_runs(monkeypatch):
    monkeypatch.setattr(search_module, "SHRINKING", 0)
    outcomes, tried = search(lambda number: WRONG if number > 100 and number % 2 else RIGHT)
    failing = next(number for number in tried if number > 100 and number % 2)
    assert [outcome.name for outcome in outcomes] == [f"number {failing}"]


def test_few_inputs_like_one_that_hangs_are_run():
    outcomes, tried = search(lambda number: HANG if number % 2 else RIGHT)
    hung = [number for number in tried if number % 2]
    assert [outcome.name for outcome in outcomes] == [f"number {min(hung)}"]
    shrinking = search_module.SHRINKING // search_module.HANGING
    assert 2 < len(hung) <= 2 + shrinking  # one hangs twice, the second time in new ranks
    assert not any(number % 2 for number in tried[-10:])  # although others are drawn


def test_only_the_first_input_that_hangs_takes_the_whole_limit():
    limits = []

    def run(example, limit, poll):
        hangs = example.value > 500
        limits.append((limit, hangs))
        return Outcome(str(example), HANG if hangs else RIGHT, "a text")

    numbers = st.builds(Number, st.integers(0, 500).map(lambda number: 2 * number))
    outcomes = Search(Settings("gloo", limit=10.0), numbers, run).outcomes()
    assert [outcome.verdict for outcome in outcomes] == [HANG]
    first = limits.index((10.0, True))
    assert all(limit == 10.0 for limit, _ in limits[:first])
    assert {limit for limit, _ in limits[first + 1 :]} == {2.0}


def test_inputs_like_one_that_fails_are_polled_for_less_time():
    polls = []

    def run(example, limit, poll):
        wrong = example.value > 500
        polls.append((example.value, poll, wrong))
        return Outcome(str(example), WRONG if wrong else RIGHT, "a text")

    numbers = st.builds(Number, st.integers(0, 500).map(lambda number: 2 * number))
    outcomes = Search(Settings("gloo"), numbers, run).outcomes()
    failing = [poll for _, poll, wrong in polls if wrong]
    assert failing[:2] == [POLL, POLL]  # also in new ranks
    again = failing.index(POLL, 2)
    assert {*failing[2:again]} == {POLL * search_module.SHORTER}
    # The smallest one, which the report has, takes all of the time again.
    assert outcomes[0].name == "number 502" and {*failing[again:]} == {POLL}
    assert {value for value, _, _ in polls[-len(failing[again:]) :]} == {502}


def test_ranks_without_a_group_are_asked_once():
    failed = Outcome(INIT, REFUSED, "no group")
    asked = []
    search = Search(Settings("gloo"), st.builds(Number), lambda x, *_: asked.append(x) or failed)
    assert search.outcomes() == [failed] and len(asked) == 1


def test_the_callers_folder_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    search(lambda number: RIGHT)
    assert not list(tmp_path.iterdir())


RUN_ALL = """
import runpy, sys
import torch.distributed as dist
destroy = dist.destroy_process_group
dist.destroy_process_group = lambda: None
for path in sys.argv[1:]:
    runpy.run_path(path)
    dist.init_process_group = lambda backend: None
destroy()
"""


def launch(folder, *programs):
    """Run programs on two ranks, all in the group of the first one, and return what they print."""
    script = folder / "all.py"
    script.write_text(RUN_ALL)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", str(script), *map(str, programs)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_report_has_a_program_that_shows_the_bug(tmp_path, monkeypatch):
    name = "a_split_of_nothing_shifts_what_follows_by_2_bytes"
    monkeypatch.setenv("C10D_DEFECT", name)
    path = tmp_path / "report.json"
    command = [sys.executable, "-m", "c10d_conformance", "--backend", "defective"]
    command += ["--import", "defective", "--ranks", "2", "-k", "generated and all_to_all_single"]
    done = subprocess.run([*command, "--report", path], capture_output=True, text=True, timeout=200)
    report = json.loads(path.read_text())
    [failure] = report["checks"][0]["failures"]
    case = "all_to_all_single float16 splits [[0, 0], [0, 1]] of rows () offset 0 sync"
    assert (report["seed"], failure["case"]) == (0, case)
    assert failure["program"] in done.stdout
    program = tmp_path / "program.py"
    program.write_text(failure["program"])
    assert "1 tensor([2.], dtype=torch.float16)" in launch(tmp_path, program)
    monkeypatch.setenv("C10D_DEFECT", "")
    assert "1 tensor([1.], dtype=torch.float16)" in launch(tmp_path, program)


def drawn(check, count):
    """Return some examples of a check that gloo carries out."""
    found = []

    def is_right(example):
        if isinstance(example, Limit):
            return not example.is_error and example.operation not in ("send", "new_group")
        if getattr(example, "operation", "") == "all_to_all" and not example.is_even(0):
            return False
        dtype = getattr(example, "dtype", torch.float32)
        return dtype == torch.float32 and getattr(example, "mode", "") in ("", "sync", "async")

    @seed(1)
    @settings(max_examples=count, database=None, phases=[Phase.generate], deadline=None)
    @given(check.examples(2).filter(is_right))
    def keep(example):
        found.append(example)

    keep()
    return found


@pytest.mark.filterwarnings("ignore")
def test_the_programs_of_all_checks_run(tmp_path):
    paths = []
    for check in CHECKS:
        for number, example in enumerate(drawn(check, 3)):
            paths.append(tmp_path / f"{check.function.__name__}_{number}.py")
            paths[-1].write_text(example.program(Settings("gloo")))
    assert len(paths) > 2 * len(CHECKS)
    launch(tmp_path, *paths)
