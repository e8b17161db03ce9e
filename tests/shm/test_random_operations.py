"""Random operations of two groups have the results of plain PyTorch."""

import pytest
from random_operations import play
from ranks import run


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_random_operations(size):
    run(play, size, size, f"seed {size}", 150)
