"""The files for hosts of code and of pages are valid, and a mistake in them is found."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.project.paths import ROOT

BIN = Path(sys.executable).parent
WORKFLOWS = ROOT / ".github" / "workflows"
OF_STARTERS = sorted(ROOT.glob("starter*/.github/workflows/*"))
READ_THE_DOCS = ROOT / ".readthedocs.yaml"
DEPENDABOT = ROOT / ".github" / "dependabot.yml"
SCHEMA = [BIN / "check-jsonschema", "--builtin-schema"]
AUDIT = [BIN / "zizmor", "--offline", "--no-progress", "--pedantic"]


def check(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "file", [*sorted(WORKFLOWS.iterdir()), *OF_STARTERS], ids=lambda x: x.relative_to(ROOT).parts[0]
)
def test_workflows_are_valid_and_safe(file):
    for command in ([*SCHEMA, "vendor.github-workflows"], AUDIT):
        status, output = check(*command, file)
        assert status == 0, output


@pytest.mark.parametrize(
    "schema, file",
    [("vendor.readthedocs", READ_THE_DOCS), ("vendor.dependabot", DEPENDABOT)],
    ids=["Read the Docs", "Dependabot"],
)
def test_hosts_take_their_files(schema, file):
    status, output = check(*SCHEMA, schema, file)
    assert status == 0, output
