"""Set-up: each system that cannot work gets one clear message."""

import ast
import json
import os
import re
import runpy
import shutil
import subprocess
import sys

import pytest

from tools.project.paths import ROOT

SCRIPT = "tools/environment.py"
PROGRESS = [f"tools/{name}.py" for name in ("__init__", "processes/__init__", "processes/progress")]
NO_NETWORK = {"PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1", "PIP_CONFIG_FILE": os.devnull}
NO_NETWORK["PIP_INDEX_URL"] = "http://127.0.0.1:9/simple"


@pytest.fixture
def clone(tmp_path):
    """The files of the project that the script reads."""
    clone = tmp_path / "clone"
    shutil.copytree(ROOT / "requirements", clone / "requirements")
    for name in (SCRIPT, "releases.toml", *PROGRESS):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, clone / name)
    return clone


def set_up(clone, stage="render", release=None, **environment):
    return subprocess.run(
        [sys.executable, SCRIPT, stage, *([release] if release else [])],
        cwd=clone,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_a_python_that_is_too_old(monkeypatch):
    ast.parse((ROOT / SCRIPT).read_text(), feature_version=(3, 7))
    old = type("version_info", (tuple,), {})((3, 10, 4, "final", 0))
    monkeypatch.setattr(sys, "version_info", old)
    monkeypatch.setattr(sys, "version", "3.10.4 (main)")
    monkeypatch.setattr(sys, "argv", [SCRIPT, "render"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(ROOT / SCRIPT), run_name="__main__")
    assert "Python 3.11 or newer is needed, but this is 3.10.4" in str(caught.value)


def test_no_network_after_a_set_up_that_was_cut_off(clone):
    """The half environment is made anew, and the error names the network."""
    (clone / ".venv/bin").mkdir(parents=True)
    for name in ("bin/python", "unfinished", "half of a package"):
        (clone / ".venv" / name).touch()
    done = set_up(clone, **NO_NETWORK)
    assert "the set-up of .venv was interrupted: beginning again" in done.stdout
    assert not (clone / ".venv/half of a package").exists()
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: requirements/pip.txt was not installed into .venv: ")
    assert "check the network" in last
    assert not (clone / ".venv/installed-render").exists()


def test_a_clone_with_a_space_in_its_path(clone):
    done = set_up(clone.rename(clone.with_name("my clone")))
    assert done.returncode == 1
    assert "my clone" in done.stderr and "move the clone" in done.stderr


def test_an_installed_environment_is_left_alone(clone):
    (clone / ".venv").symlink_to(ROOT / ".venv")
    done = set_up(clone, "execute")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_build_folder_that_cannot_be_made(clone):
    (clone / "_build").write_text("a file in its place")
    done = set_up(clone)
    assert done.returncode == 1
    assert done.stderr.startswith("error: cannot write ")


def test_a_release_that_is_not_supported(clone):
    done = set_up(clone, "execute", release="9.9")
    assert done.returncode == 1
    assert done.stderr.startswith("error: TORCH=9.9: this release of PyTorch is not supported; ")
    assert "releases.toml names 2." in done.stderr
    assert not list(clone.glob(".venv*"))


@pytest.fixture
def announce(monkeypatch, capsys):
    """Announce a release, in an environment without packages; return what is printed."""
    module = runpy.run_path(str(ROOT / SCRIPT))
    offers = json.dumps({"name": "torch", "versions": ["2.15.0", "2.13.0+cpu", "2.13.0"]})
    answer = subprocess.CompletedProcess([], 0, stdout=offers, stderr="")
    announce_torch = module["Environment"].announce_torch
    monkeypatch.setitem(announce_torch.__globals__, "run", lambda *_, **options: answer)

    def announce(release):
        environment = module["Environment"](release)
        environment.folder = "/nowhere"
        environment.announce_torch()
        return capsys.readouterr().out

    return announce


@pytest.mark.parametrize(
    "release, kind, sizes",
    [("2.15.0", "the build for CUDA", "2.8 GB"), ("2.13.0", "a CPU build", "0.2 GB")],
)
def test_a_download_is_announced_with_its_size(announce, release, kind, sizes):
    [line] = announce(release).splitlines()
    assert line.startswith(f"PyTorch {release}, {kind}") and f" {sizes} to download" in line


def test_an_index_without_the_release(announce):
    with pytest.raises(SystemExit) as caught:
        announce("2.14.1")
    message = str(caught.value)
    assert "has PyTorch 2.14.1" in message and "make html TORCH=" in message


def test_a_nightly_is_found(clone, tmp_path, monkeypatch, capsys):
    """By pip itself, which lists no pre-releases unless it is told to."""
    nightly = "2.16.0.dev20261122"
    for version in ("2.15.0", nightly):
        (tmp_path / f"torch-{version}-py3-none-any.whl").touch()
    for name, value in {**NO_NETWORK, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    releases = clone / "releases.toml"
    releases.write_text(releases.read_text().replace("2.15.0", nightly))
    environment = runpy.run_path(str(clone / SCRIPT))["Environment"](nightly)
    environment.python = sys.executable
    environment.announce_torch()
    assert f"PyTorch {nightly}, " in capsys.readouterr().out


def test_a_disk_that_will_not_suffice_is_noticed_before_the_download(announce, monkeypatch):
    little = shutil.disk_usage(ROOT)._replace(free=3 * 10**9)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: little)
    with pytest.raises(SystemExit) as caught:
        announce("2.15.0")
    assert "has 3.0 GB free" in str(caught.value) and "need 10.0 GB" in str(caught.value)
    assert announce("2.13.0"), "the CPU build fits"


PINNED = re.compile(r"^[\w.-]+==\S+(?P<hashes>( \\\n    --hash=sha256:[0-9a-f]{64})*)$", re.M)


@pytest.mark.parametrize(
    "file", sorted((ROOT / "requirements").rglob("*.txt")), ids=lambda x: x.name
)
def test_every_package_is_pinned_with_hashes(file):
    """Without one of them, pip refuses the file; without any, it takes whatever an index has."""
    text = re.sub(r"^(#.*|-r .*|)\n", "", file.read_text(), flags=re.M)
    assert all(match["hashes"] for match in PINNED.finditer(text))
    assert PINNED.sub("", text).strip() == ""


@pytest.mark.parametrize("is_light", [False, True], ids=["CUDA", "CPU"])
def test_hashes_are_checked_unless_pytorch_is_a_cpu_build(clone, is_light):
    environment = runpy.run_path(str(clone / SCRIPT))["Environment"]("2.13.0")
    installed = []
    environment.pip_install = lambda file, arguments, needed: installed.extend(arguments)
    (clone / "_build").mkdir()
    environment.install_torch(is_light, [])
    constraints = (clone / installed[installed.index("--constraint") + 1]).read_text()
    assert "\ntorch==2.13.0" in constraints and "\nsetuptools==" in constraints
    assert ("--hash" in constraints) != is_light


# A pip that talks as the real one does, and ends when its standard input does.
PIP = """\
#!/bin/sh
echo "WARNING: Location is ignored: it is neither a file nor a directory." >&2
echo "Collecting one==1"
echo "Processing /index/two-2-py3-none-any.whl"
echo "Progress 1000000 of 2000000"
read line
echo "ERROR: No matching distribution found for three"
exit $FAKE_STATUS
"""
INSTALL = f"""\
import runpy
Environment = runpy.run_path("{SCRIPT}")["Environment"]
from tools.processes import progress
progress.FIRST = 0.1
environment = Environment()
environment.folder, environment.python = "venv", "./pip"
environment.unfinished = "venv/unfinished"
environment.pip_install("requirements/render.txt", [], 3)
"""


@pytest.mark.parametrize("status", [0, 1])
def test_pip_is_heard_only_if_it_fails(clone, status):
    (clone / "venv").mkdir()
    (clone / "pip").write_text(PIP)
    (clone / "pip").chmod(0o700)
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", INSTALL],
        cwd=clone,
        env={**os.environ, "FAKE_STATUS": str(status), "PYTHONPATH": str(clone)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "installing requirements/render.txt into .venv\n"
    line = process.stdout.readline()  # Or else pytest's limit ends it.
    output, errors = process.communicate("\n", timeout=600)
    assert line.startswith("    2 of 3 packages found, 1 of 2 MB of the last one, ")
    assert process.returncode == status
    if status:
        assert "WARNING: Location is ignored" in errors and "ERROR: No matching" in errors
        assert "Progress" not in errors and "error: requirements/render.txt was not" in errors
    else:
        assert errors == "" and "WARNING" not in output


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
    """Every machine takes the packages from where it takes all others."""
    lock = (ROOT / "requirements/package-lock.json").read_text()
    assert '"integrity"' in lock and "resolved" not in lock
    assert "://" not in "".join(x for x in lock.splitlines() if '"url"' not in x)
