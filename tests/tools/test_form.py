"""All Python code has the form that pyproject.toml configures."""

import subprocess
import sys

import pytest

from tools.project.paths import ROOT

CHECKS = [["check"], ["format", "--check", "--diff"]]


def ruff(*arguments, code=None):
    command = [sys.executable, "-m", "ruff", *arguments, "--no-cache"]
    return subprocess.run(command, cwd=ROOT, input=code, capture_output=True, text=True)


@pytest.mark.parametrize("check", CHECKS, ids=lambda x: x[0])
def test_the_form_of_all_code(check):
    done = ruff(*check)
    assert done.returncode == 0, done.stdout + "mend it with `make format`"


@pytest.mark.parametrize("check", CHECKS, ids=lambda x: x[0])
def test_code_in_another_form_is_found(check):
    code = "import sys, os\nx = { 1:2 }\n"
    assert ruff(*check, "--stdin-filename", "tools/html.py", "-", code=code).returncode == 1
