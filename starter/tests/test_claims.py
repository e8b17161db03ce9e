"""Each check that claims.txt names must be right."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINES = (ROOT / "claims.txt").read_text().splitlines()
CLAIMS = [line.strip() for line in LINES if line.strip() and not line.startswith("#")]
NAME = "dummy"
SUITE = [sys.executable, "-m", "c10d_conformance"]
SUITE += ["--backend", NAME, "--import", f"{NAME}_collectives"]


@pytest.fixture(scope="module")
def checks(tmp_path_factory):
    """Run the suite once, for all claims; return what its report has of each check."""
    report = tmp_path_factory.mktemp("suite") / "report.json"
    command = [*SUITE, "-k", " or ".join(CLAIMS), "--report", str(report)]
    folder = ROOT / "conformance"
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert report.is_file(), done.stdout + done.stderr
    return json.loads(report.read_text())["checks"]


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim(claim, checks):
    found = [check for check in checks if check["id"] == claim]
    assert found, f"the suite has no check {claim}"
    for check in found:
        texts = [x["text"] for x in check["failures"] + check["refusals"]]
        assert check["verdict"] == "right", f"with {check['ranks']} ranks: {texts}"
