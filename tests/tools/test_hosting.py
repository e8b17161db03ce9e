"""The files for hosts of code and of pages are valid, and a mistake in them is found."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools.project.languages import TRANSLATIONS
from tools.project.paths import ROOT

BIN = Path(sys.executable).parent
WORKFLOWS = ROOT / ".github" / "workflows"
OF_STARTERS = sorted(ROOT.glob("starter*/.github/workflows/*"))
ON_A_PAGE = ROOT / "gallery" / "communicate" / "test_your_backend" / "test.yml"
READ_THE_DOCS = ROOT / ".readthedocs.yaml"
DEPENDABOT = ROOT / ".github" / "dependabot.yml"
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").iterdir())
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


def test_the_workflow_on_a_page_is_valid_and_its_sample_runs_the_command():
    assert check(*SCHEMA, "vendor.github-workflows", ON_A_PAGE)[0] == 0
    # A page has no room for the findings of a pedant, such as limits of concurrency.
    status, output = check(*[x for x in AUDIT if x != "--pedantic"], ON_A_PAGE)
    assert status == 0, output
    [job] = yaml.safe_load(ON_A_PAGE.read_text())["jobs"].values()
    command = job["steps"][-1]["run"]
    assert f"$ {command} -k " in ON_A_PAGE.with_name("output.txt").read_text()


@pytest.mark.parametrize(
    "schema, files",
    [
        ("vendor.readthedocs", [READ_THE_DOCS]),
        ("vendor.dependabot", [DEPENDABOT]),
        ("vendor.github-issue-forms", FORMS),
    ],
    ids=["Read the Docs", "Dependabot", "forms of issues"],
)
def test_hosts_take_their_files(schema, files):
    status, output = check(*SCHEMA, schema, *files)
    assert status == 0, output


@pytest.mark.parametrize(
    "file, answer",
    [
        ("docs/index.md", "no"),
        ("tests/site/test_pages.py", "no"),
        ("gallery/right/waiting/wait.cpp", "yes"),
        ("extension/frame/engine.hpp", "yes"),
        ("extension/shm_collectives/setup.py", "yes"),
    ],
)
def test_sanitizers_run_before_a_merge_of_cpp(tmp_path, file, answer):
    """The step compares the merge that GitHub makes with its first parent, the main branch."""
    workflow = yaml.safe_load((WORKFLOWS / "test-and-publish.yml").read_text())
    [compare] = [x for x in workflow["jobs"]["list"]["steps"] if x.get("id") == "compare"]
    variables = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org"}
    variables |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
    variables |= {"GITHUB_OUTPUT": str(tmp_path / "output"), "GIT_CONFIG_GLOBAL": os.devnull}
    others = "extension/main.cpp"  # Arrived on the main branch since the request left it.
    script = f"""
        set -e
        commit() {{
            mkdir -p "$(dirname "$1")"; echo "$1" > "$1"; git add "$1"; git commit -qm "$1"
        }}
        git init -q -b main; commit LICENSE
        git checkout -q -b request; commit {file}
        git checkout -q main; commit {others}; git merge -q --no-edit request
        {compare["run"]}
    """
    subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=os.environ | variables, check=True, timeout=600
    )
    assert (tmp_path / "output").read_text() == f"cpp={answer}\n"


def test_a_pull_request_is_tested_once():
    """By the event of the request alone: a push to its branch starts nothing."""
    for file in [*WORKFLOWS.iterdir(), *OF_STARTERS]:
        events = yaml.safe_load(file.read_text())[True]  # YAML reads `on` so.
        if "pull_request" in events and "push" in events:
            assert events["push"] == {"branches": ["main"]}, file


def test_one_check_stands_for_all_that_a_merge_needs():
    """It waits for every job of a request: required, it neither hangs nor misses one."""
    jobs = yaml.safe_load((WORKFLOWS / "test-and-publish.yml").read_text())["jobs"]
    assert set(jobs["merge"]["needs"]) == set(jobs) - {"merge", "publish"}


def test_files_have_owners():
    """Each folder exists, and each finished translation has a team that can read it."""
    lines = (ROOT / ".github/CODEOWNERS").read_text().splitlines()
    owners = dict(line.split() for line in lines if line and not line.startswith("#"))
    assert all(list(ROOT.glob(path.lstrip("/"))) or path[0] == "*" for path in owners)
    teams = [owners.get(f"/locales/{x.gettext}/") for x in TRANSLATIONS if x.complete]
    assert None not in teams and len(set(teams)) == len(teams)


def test_the_dev_container_has_what_the_readme_asks_for():
    """A Debian with a compiler, where `make test` installs the other packages as root."""
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    [minor] = re.findall(r"^python:3\.(\d+)-[a-z]+$", container["image"])
    assert int(minor) >= 11 and container["remoteUser"] == "root"
