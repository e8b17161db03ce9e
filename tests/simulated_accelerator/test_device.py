"""The device `sim` does what PyTorch and its users expect of an accelerator."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = Path(__file__).with_name("checks.py")


@pytest.fixture(scope="module")
def results():
    done = subprocess.run([sys.executable, CHECKS], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", re.findall(r"^def check_(\w+)", CHECKS.read_text(), re.M))
def test_device(name, results):
    assert results[f"check_{name}"] == "", results[f"check_{name}"]
