"""Set-up: each system that cannot work gets one clear message."""

import ast
import json
import os
import runpy
import shutil
import subprocess
import sys

import pytest

from tools.project.paths import ROOT

SCRIPT = "tools/environment.py"


NO_NETWORK = {"PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1", "PIP_CONFIG_FILE": os.devnull}


def set_up(project, stage="render", release=None, **environment):
    return subprocess.run(
        [sys.executable, SCRIPT, stage, *([release] if release else [])],
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
    assert "Python 3.11 or newer is needed, but this is 3.10.4" in str(caught.value)


def test_the_script_keeps_to_syntax_that_an_old_python_can_read():
    ast.parse((ROOT / SCRIPT).read_text(), feature_version=(3, 7))


def test_no_network(project):
    done = set_up(project, PIP_INDEX_URL="http://127.0.0.1:9/simple", **NO_NETWORK)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: requirements/pip.txt was not installed into .venv: ")
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


@pytest.fixture
def script(monkeypatch):
    """The names of the script. Its environment is in no folder, and pip offers 2.15.0."""
    module = runpy.run_path(str(ROOT / SCRIPT))
    offers = json.dumps({"name": "torch", "versions": ["2.15.0", "2.13.0+cpu", "2.13.0"]})
    answer = subprocess.CompletedProcess([], 0, stdout=offers, stderr="")
    announce = module["Environment"].announce_torch
    monkeypatch.setitem(announce.__globals__, "run", lambda *_, **options: answer)
    return module


def announced(script, capsys, release="2.15.0"):
    environment = script["Environment"](release)
    environment.folder = "/nowhere"
    environment.announce_torch()
    return capsys.readouterr().out


def test_what_will_be_downloaded(script, capsys):
    assert announced(script, capsys) == (
        "PyTorch 2.15.0, the build for CUDA, which works without a GPU: 2.8 GB to download, "
        "5.7 GB when installed\n"
    )


def test_a_cpu_build_in_pips_own_configuration(script, capsys):
    [line] = announced(script, capsys, "2.13.0").splitlines()
    assert line.startswith("PyTorch 2.13.0, a CPU build: 0.2 GB to download, 1.0 GB")


def test_an_index_without_the_release(script, capsys):
    with pytest.raises(SystemExit) as caught:
        announced(script, capsys, "2.14.1")
    message = str(caught.value)
    assert "has PyTorch 2.14.1" in message and "make html TORCH=" in message


def test_a_disk_that_will_not_suffice_is_noticed_before_the_download(script, monkeypatch, capsys):
    little = shutil.disk_usage(ROOT)._replace(free=3 * 10**9)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: little)
    with pytest.raises(SystemExit) as caught:
        announced(script, capsys)
    assert "has 3.0 GB free" in str(caught.value) and "need 10.0 GB" in str(caught.value)
    assert announced(script, capsys, "2.13.0"), "the CPU build fits"


@pytest.mark.parametrize("release", ["9.9", "2.12.1", "2.15"])
def test_a_release_that_is_not_supported(project, release):
    done = set_up(project, "execute", release=release)
    assert done.returncode == 1
    assert done.stderr == (
        f"error: TORCH={release}: this release of PyTorch is not supported; "
        "releases.toml names 2.15.0, 2.14.1, 2.13.0\n"
    )
    assert not list(project.root.glob(".venv*"))


def test_a_set_up_that_was_cut_off_begins_anew(project):
    (project.root / ".venv/bin").mkdir(parents=True)
    project.write(".venv/bin/python", "")
    project.write(".venv/unfinished", "")
    project.write(".venv/half of a package", "")
    done = set_up(project, PIP_INDEX_URL="http://127.0.0.1:9/simple", **NO_NETWORK)
    assert "the set-up of .venv was interrupted: beginning again" in done.stdout
    assert not (project.root / ".venv/half of a package").exists()


def test_no_network_for_npm(tmp_path, monkeypatch):
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9/")
    monkeypatch.setenv("NPM_CONFIG_FETCH_RETRIES", "0")
    monkeypatch.setenv("NPM_CONFIG_CACHE", str(tmp_path / "cache"))
    environment = runpy.run_path(str(ROOT / SCRIPT))["Environment"]()
    environment.python, environment.folder = sys.executable, str(tmp_path)
    with pytest.raises(SystemExit) as caught:
        environment.npm_install()
    assert "requirements/package.json was not installed into " in str(caught.value)
    assert "check the network" in str(caught.value)


def test_the_lock_file_names_no_registry():
    """Then every machine takes the packages from where it takes all others."""
    lock = (ROOT / "requirements/package-lock.json").read_text()
    assert '"integrity"' in lock and "resolved" not in lock
    assert "://" not in "".join(x for x in lock.splitlines() if '"url"' not in x)
