"""The backend `simccl`: values with each library, errors, groups."""

import json
import os
import re
from pathlib import Path

import pytest
from launcher import launch

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


@pytest.fixture(scope="module")
def errors():
    return [json.loads(line) for line in run("errors", timeout=100)]


def test_abort(errors):
    error, soon = errors[0]["abort"]
    assert "rank 0 has aborted the group" in error and soon
    assert "DistBackendError" in errors[1]["abort"]


def test_block_current_stream(errors):
    assert [of_rank["block_current_stream"] for of_rank in errors] == [2.0, 2.0]


def test_messages_do_not_count_as_collectives(errors):
    assert [of_rank["sequence_number"] for of_rank in errors] == [1, 1]


def test_the_library_has_the_timeout_of_the_call(errors):
    assert [of_rank["longer_timeout"] for of_rank in errors] == ["none", "none"]


def test_refusals_come_at_once(errors):
    expected = ["cannot reduce tensors of bool", "tensors of one device", "3 times|2 times"]
    for of_rank in errors:
        for text, part in zip(of_rank["refusals"], [*expected, "overlap in memory"], strict=True):
            assert re.search(f"ValueError: Backend simccl: .*({part})", text), text
        assert 'there is no rule "nothing"' in of_rank["wrong_options"][0]
        assert "no module has registered 'nothing'" in of_rank["wrong_options"][1]


def test_a_group_that_knows_its_device():
    # The sum of both, and of both again; the current device is still the first one.
    assert run("device_id") == ["6.0 0\n"] * 2
