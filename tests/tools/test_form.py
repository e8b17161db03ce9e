"""The code has the types that it says, and the one form that `make format` gives it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.project.paths import BUILD, ROOT

BIN = Path(sys.executable).parent
CPP = [x for x in ROOT.glob("[!._]*/**/*.[ch]pp") if "build" not in x.parts]
COMMANDS = {
    "types": ["mypy", "--cache-dir", BUILD / "mypy"],
    "mistakes in Python": ["ruff", "check", "--no-cache"],
    "form of Python": ["ruff", "format", "--check", "--no-cache"],
    "form of C++": ["clang-format", "--dry-run", "-Werror", *CPP],
}


@pytest.mark.parametrize("check", COMMANDS)
def test_form(check):
    tool, *arguments = COMMANDS[check]
    done = subprocess.run([BIN / tool, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
