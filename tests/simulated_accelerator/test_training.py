"""Training on `sim` with `simccl` has the losses of training on the CPU with gloo."""

import json
from pathlib import Path

import pytest
from launcher import launch

WAYS = "fsdp2_in_bfloat16 fsdp2_with_offload checkpoint random_dtensor".split()


@pytest.fixture(scope="module")
def results():
    program = Path(__file__).with_name("training.py")
    lines = launch(program, ranks=2, timeout=600, expected_stderr=".*", show=False)
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("way", WAYS)
def test_training(way, results):
    for of_rank in results:
        ours, theirs = of_rank[way]
        assert ours == theirs
