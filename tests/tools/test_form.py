"""The code has the types that it says, and the one form that `make format` gives it."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools.project.git import git, has_history
from tools.project.paths import BUILD, ROOT

BIN = Path(sys.executable).parent
CPP = [x for x in ROOT.glob("[!._]*/**/*.[ch]pp") if "build" not in x.parts]
COMMANDS = {
    "types": ["mypy", "--cache-dir", BUILD / "mypy"],
    "mistakes in Python": ["ruff", "check", "--no-cache"],
    "form of Python": ["ruff", "format", "--check", "--no-cache"],
    "form of C++": ["clang-format", "--dry-run", "-Werror", *CPP],
    "spelling": ["codespell"],
}


@pytest.mark.parametrize("check", COMMANDS)
def test_form(check):
    tool, *arguments = COMMANDS[check]
    done = subprocess.run([BIN / tool, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pre_commit_starts_the_tools_of_make_format():
    """And the spell check, which corrects nothing by itself."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    *formatting, spelling = [shlex.split(hook["entry"]) for hook in hooks]
    command = ["make", "--dry-run", "--no-print-directory", "format"]
    environment = {**os.environ, "MAKEFLAGS": "", "MAKELEVEL": ""}  # Not those of `make test`.
    lines = subprocess.check_output(command, cwd=ROOT, env=environment, text=True).splitlines()
    _, *commands = [line.split("$", 1)[0].split() for line in lines]
    assert formatting == commands[: len(formatting)]
    assert [entry[0] for entry in formatting] == [command[0] for command in commands]
    assert spelling == [".venv/bin/codespell"]


@pytest.mark.skipif(not has_history(), reason="the commits are elsewhere")
def test_blame_passes_over_commits_of_this_history():
    """Git says nothing about another one, which hides nothing."""
    lines = (ROOT / ".git-blame-ignore-revs").read_text().splitlines()
    for commit in [line for line in lines if line and not line.startswith("#")]:
        assert git("merge-base", "--is-ancestor", commit, "HEAD") is not None, commit
