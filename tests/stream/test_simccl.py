"""The backend `simccl`: values with each library, errors, groups."""

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from checks import names_in, results_of
from launcher import launch
from torch.distributed import TCPStore

from tools.project.paths import SUITE

HERE = Path(__file__).parent


def run(name, **options):
    return launch(HERE / f"{name}.py", ranks=2, expected_stderr=".*", show=False, **options)


@pytest.mark.parametrize("library", ["gloo", "store", "shm"])
def test_operations_are_those_of_gloo(library, monkeypatch):
    monkeypatch.setenv("SIMCCL_LIBRARY", library)
    monkeypatch.setenv("PYTHONPATH", str(SUITE), prepend=os.pathsep)
    for line in run("operations"):
        results = json.loads(line)
        assert [name for name, right in results.items() if not right] == []


ONE_PROCESS = HERE / "one_process.py"


@pytest.fixture(scope="module")
def results_in_one_process():
    return results_of(ONE_PROCESS)


@pytest.mark.parametrize("name", names_in(ONE_PROCESS))
def test_in_one_process(name, results_in_one_process):
    assert results_in_one_process[name] == "", results_in_one_process[name]


@contextlib.contextmanager
def started(store):
    """Rank 1, and then rank 0 when that one waits for it; both are killed in the end."""
    ranks = []
    try:
        for rank in (1, 0):
            command = [sys.executable, HERE / "starts.py", str(store.port), str(rank)]
            ranks.insert(0, subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            assert ranks[0].stdout.readline() == "begins\n"
        yield ranks
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
            rank.stdout.close()


def test_a_start_after_a_kill_at_the_same_store():
    store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    for _ in range(2):
        with started(store) as ranks:
            assert [rank.stdout.readline() for rank in ranks] == ["3.0\n"] * 2


@pytest.fixture(scope="module")
def errors():
    return [json.loads(line) for line in run("errors", timeout=600)]


def test_abort(errors):
    assert "rank 0 has aborted the group" in errors[0]["abort"]
    assert "DistBackendError" in errors[1]["abort"]


def test_block_current_stream(errors):
    assert [of_rank["block_current_stream"] for of_rank in errors] == [2.0, 2.0]


def test_messages_do_not_count_as_collectives(errors):
    assert [of_rank["sequence_number"] for of_rank in errors] == [1, 1]


def test_the_library_has_the_timeout_of_the_call(errors):
    assert [of_rank["longer_timeout"] for of_rank in errors] == ["none", "none"]


def test_a_receive_without_a_send_does_not_hold_up_the_end(errors):
    assert all(1 < of_rank["receive_without_a_send"] < 60 for of_rank in errors)


def test_refusals_come_at_once(errors):
    expected = ["cannot reduce tensors of bool", "tensors of one device", "3 times|2 times"]
    for of_rank in errors:
        for text, part in zip(of_rank["refusals"], [*expected, "overlap in memory"], strict=True):
            assert re.search(f"ValueError: Backend simccl: .*({part})", text), text
        assert 'there is no rule "nothing"' in of_rank["wrong_options"][0]
        assert "no module has registered 'nothing'" in of_rank["wrong_options"][1]


def test_a_batch_whose_call_is_refused_ends(errors):
    for rank, of_rank in enumerate(errors):
        overlap, total, alone, again, received = of_rank["refused_batch"]
        assert "ValueError: Backend simccl: recv cannot write to a tensor whose elements" in overlap
        assert "needs its send and its receive in one batch" in alone
        assert [total, again, received] == [2.0, 2.0, 1.0 - rank]


def test_a_batch_whose_collective_is_refused_ends(errors):
    for error, total in (of_rank["refused_collective"] for of_rank in errors):
        assert "ValueError: Backend simccl: all_gather cannot write to a tensor" in error
        assert total == 2.0


def test_a_group_that_knows_its_device():
    # The sum of both, and of both again; the current device is still the first one.
    assert run("device_id") == ["6.0 0\n"] * 2
