"""Setting up: what cannot work is refused with one message."""

import ast
import os
import runpy
import shutil
import subprocess
import sys

import pytest

from tools.paths import ROOT

SCRIPT = "tools/setup_environment.py"


def set_up(project, stage="render", **environment):
    return subprocess.run(
        [sys.executable, SCRIPT, stage],
        cwd=project.root,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_a_python_that_is_too_old(monkeypatch):
    old = type("version_info", (tuple,), {})((3, 10, 4, "final", 0))
    monkeypatch.setattr(sys, "version_info", old)
    monkeypatch.setattr(sys, "version", "3.10.4 (main)")
    monkeypatch.setattr(sys, "argv", [SCRIPT, "render"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(ROOT / SCRIPT), run_name="__main__")
    assert "Python 3.11 or newer is needed, this is 3.10.4" in str(caught.value)


def test_the_script_keeps_to_syntax_that_an_old_python_can_read():
    ast.parse((ROOT / SCRIPT).read_text(), feature_version=(3, 7))


def test_no_network(project):
    environment = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    environment |= {"PIP_NO_CACHE_DIR": "1", "PIP_CONFIG_FILE": os.devnull}
    done = set_up(project, **environment)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: requirements/render.txt was not installed; ")
    assert "check the network" in last
    assert not (project.root / ".venv/installed-render").exists()


def test_a_clone_with_a_space_in_its_path(project):
    project.root = project.root.rename(project.root.with_name("my clone"))
    done = set_up(project)
    assert done.returncode == 1
    assert "my clone" in done.stderr and "move the clone" in done.stderr


def test_an_installed_environment_is_left_alone(project):
    (project.root / ".venv").symlink_to(ROOT / ".venv")
    done = set_up(project, "execute")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_build_folder_that_cannot_be_made(project):
    os.rename(project.root / "_build", project.root / "moved")
    project.write("_build", "a file in its place")
    done = set_up(project)
    assert done.returncode == 1
    assert done.stderr.startswith("error: cannot write ")


def test_no_network_for_npm(tmp_path, monkeypatch, capsys):
    module = runpy.run_path(str(ROOT / SCRIPT))
    for name in module["NPM_FILES"]:
        shutil.copy(ROOT / "requirements" / name, tmp_path)
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9/")
    monkeypatch.setenv("NPM_CONFIG_FETCH_RETRIES", "0")
    monkeypatch.setenv("NPM_CONFIG_CACHE", str(tmp_path / "cache"))
    command = ["-c", module["NPM"], "ci", "--ignore-scripts"]
    with pytest.raises(SystemExit) as caught:
        module["install_with"]("npm", command, "requirements/package.json", tmp_path)
    assert "requirements/package.json was not installed; " in str(caught.value)
    assert "check the network" in str(caught.value), capsys.readouterr().err


def test_the_lock_file_names_no_registry():
    """Then every machine takes the packages from where it takes all others."""
    lock = (ROOT / "requirements/package-lock.json").read_text()
    assert '"integrity"' in lock and "resolved" not in lock
    assert "://" not in "".join(x for x in lock.splitlines() if '"url"' not in x)
