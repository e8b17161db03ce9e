"""The device `sim` does what PyTorch and its users expect of an accelerator."""

from pathlib import Path

import pytest
from checks import names_in, results_of

DEVICE = Path(__file__).with_name("device.py")


@pytest.fixture(scope="module")
def results():
    return results_of(DEVICE)


@pytest.mark.parametrize("name", names_in(DEVICE))
def test_device(name, results):
    assert results[name] == "", results[name]
