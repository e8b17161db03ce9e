"""A new project has the reader's name everywhere, all operations, and tests that pass."""

import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from unittest import mock

import pytest
import torch

from tools.new_backend import TAKEN, next_commands
from tools.pages.new_project import STARTER, SUITE, project_files
from tools.processes.run import run
from tools.project.paths import EXTENSIONS, ROOT
from tools.project.published import PUBLISHED

COPIED = ("frame/", "store/", "wheels/")
LONG = "a_long_name_that_breaks_lines_where_acme_does_not"


def new_backend(*arguments, command=(sys.executable, "-m", "tools.new_backend")):
    command = [*command, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


def files_in(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def own_texts(files):
    return {path: text.decode() for path, text in files.items() if not path.startswith(COPIED)}


@pytest.fixture(scope="module")
def files():
    return project_files("my_net")


def test_every_name_is_the_readers(files):
    own = own_texts(files)
    assert not [path for path, text in own.items() if re.search("acme|dummy", path + text, re.I)]
    assert "class MyNetTransport final : public" in own["src/my_net_transport.hpp"]
    assert '\nname = "my-net-collectives"\n' in own["pyproject.toml"]
    assert '\nmy_net = "my_net_collectives:register"\n' in own["pyproject.toml"]
    assert {"src/registration.cpp", "my_net_collectives/__init__.py"} <= files.keys()
    assert {"frame/engine.hpp", "store/store_transport.hpp", "LICENSE"} <= files.keys()


def test_the_suite_is_a_dependency_whose_wheel_is_there(files):
    dependencies = tomllib.loads(files["pyproject.toml"].decode())["project"]
    [requirement] = dependencies["optional-dependencies"]["test"]
    name, _, version = requirement.replace("-", "_").partition("==")
    wheel = files[f"wheels/{name}-{version}-py3-none-any.whl"]
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        found = {x: archive.read(x) for x in archive.namelist() if x.endswith(".py")}
    assert found == {x.relative_to(SUITE).as_posix(): x.read_bytes() for x in SUITE.rglob("*.py")}


@pytest.mark.parametrize("folder", [STARTER, *EXTENSIONS], ids=lambda folder: folder.name)
def test_a_build_needs_no_cuda_toolkit_and_is_the_same_with_a_gpu(folder):
    """Most readers with a GPU have the driver and PyTorch, and no toolkit."""
    script = folder / "setup.py"
    extensions = []
    for has_gpu in (True, False):
        with (
            mock.patch("torch.cuda.is_available", return_value=has_gpu),
            mock.patch("torch.utils.cpp_extension.CUDA_HOME", None),
            mock.patch("setuptools.setup") as setup,
        ):
            exec(compile(script.read_text(), script, "exec"), {"__file__": str(script)})
        [extension] = setup.call_args.kwargs["ext_modules"]
        extensions.append(vars(extension))
    assert extensions[0] == extensions[1] and "c10" in extensions[0]["libraries"]


def test_it_is_written_whole_and_alike_each_time(tmp_path, files):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "new" / "folder", tmp_path / "empty"):
        done = new_backend("my_net", folder)
        assert done.returncode == 0, done.stderr
        assert files_in(folder) == files
        assert shlex.split(done.stdout.splitlines()[2]) == ["cd", str(folder)]
    assert len(list(tmp_path.iterdir())) == 2, "nothing else is left"


@pytest.mark.parametrize("name", ["a", LONG])
def test_ruff_accepts_it(tmp_path, name):
    assert new_backend(name, tmp_path / "new").returncode == 0
    for check in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *check, "--no-cache"]
        done = subprocess.run(command, cwd=tmp_path / "new", capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_each_page_that_it_names_exists(files):
    texts = "".join(own_texts(files).values())
    pages = set(re.findall(rf"{re.escape(PUBLISHED.url)}en/([\w/-]+)\.html", texts))
    assert pages and "https://SITE" not in texts
    for page in pages:
        sample = ROOT / "gallery" / f"{page.replace('-', '_')}.py"
        assert (ROOT / "docs" / f"{page}.md").is_file() or sample.is_file(), page


def test_the_workflow_runs_the_commands_of_the_readme_and_our_actions(files):
    workflow = files[".github/workflows/test.yml"].decode()
    steps = re.findall(r"- run: (.*)", workflow)
    assert steps[-3:] == next_commands(files)
    ours = (ROOT / ".github/workflows/test-and-publish.yml").read_text()
    assert set(re.findall(r"- uses: .*", workflow)) <= set(re.findall(r"- uses: .*", ours))


@pytest.mark.parametrize(
    "name, text",
    [
        ("", "name the backend: make new-backend NAME=acme"),
        ("Acme", "NAME=Acme: a name has lower-case letters"),
        ("2acme", "[a-z][a-z0-9_]*"),
        ("acme_", "[a-z][a-z0-9_]*"),
        ("../acme", "[a-z][a-z0-9_]*"),
        ("acme\n", "[a-z][a-z0-9_]*"),
        ("class", "keyword of Python"),
        ("nccl", "there is a backend of this name"),
        ("x" * 300, "File name too long"),
    ],
)
def test_a_name_that_is_refused(tmp_path, name, text):
    refused(text, name, tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def refused(text, *arguments, **options):
    done = new_backend(*arguments, **options)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("error: ") and text in done.stderr
    assert "Traceback" not in done.stderr


def test_the_names_of_all_backends_are_refused():
    # In a process of its own: other tests may have registered backends in this one.
    program = (
        "from torch.distributed import Backend; print(*Backend.backend_list, *Backend._plugins)"
    )
    names = {*subprocess.check_output([sys.executable, "-c", program], text=True).split()}
    assert "gloo" in names
    names |= {path.name.removesuffix("_collectives") for path in EXTENSIONS}
    assert {name.lower() for name in names} <= TAKEN


def test_a_folder_that_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(ROOT / "extension")
    refused("is inside this repository", "acme", ROOT / "acme")
    refused("is inside this repository", "acme", tmp_path / "link" / "acme")
    refused("is no empty folder", "acme", tmp_path)
    (tmp_path / "file").write_text("")
    refused("is no empty folder", "acme", tmp_path / "file")
    refused("cannot write", "acme", tmp_path / "file" / "acme")
    refused("contains a space", "acme", tmp_path / "a b")
    refused("cannot write /proc/acme", "acme", "/proc/acme")
    refused("cannot write ~nobody-of-this-name/acme", "acme", "~nobody-of-this-name/acme")
    assert len(list(tmp_path.iterdir())) == 2 and not (ROOT / "extension" / "acme").exists()


def test_only_a_name_of_the_command_line_counts():
    command = ["make", "--dry-run", "--no-print-directory", "new-backend"]
    environment = {**os.environ, "NAME": "of_this_machine", "MAKEFLAGS": ""}
    for variables, expected in (([], '"" ""'), (["NAME=acme", "FOLDER=../x"], '"acme" "../x"')):
        done = subprocess.run(
            [*command, *variables], cwd=ROOT, env=environment, capture_output=True
        )
        assert done.stdout.decode().endswith(f"tools.new_backend {expected}\n")


@pytest.mark.slow
def test_the_printed_commands_work_and_a_wrong_claim_fails(tmp_path):
    """In an environment with our PyTorch; without a package index."""
    done = new_backend("my_net", tmp_path / "project")
    commands = [line.strip() for line in done.stdout.splitlines() if line.startswith("    ")]
    assert len(commands) == 4, done.stdout
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    [packages] = tmp_path.glob("venv/lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(str(Path(torch.__file__).parents[1]))

    go, tools, install, test = commands
    output = shell(tmp_path, f"{go}\n{tools}\n{install}", timeout=600)
    assert "-Wall -Wextra" in output and "warning:" not in output
    # tests/conformance runs all checks of the same transport.
    claims = tmp_path / "project" / "claims.txt"
    chosen = ["lifecycle.names", "lifecycle.entry_point", "features.ddp_trains"]
    lines = claims.read_text().splitlines(keepends=True)
    some = "".join(x for x in lines if x.partition(":")[0] in chosen)
    claims.write_text(some)
    test += f" -k '{' or '.join(chosen)}'"
    assert "0 of 4 checks fail" in shell(tmp_path, f"{go}\n{test}")
    claims.write_text(some.replace("names: 2", "names: 3"))
    assert "names: 3 cases claimed, 2 right" in shell(tmp_path, f"{go}\n{test}", status=1)


def shell(folder, script, *, status=0, timeout=600):
    """Run commands as printed, in the environment; return their output."""
    search = [folder / "venv" / "bin", Path(sys.executable).parent, os.environ["PATH"]]
    environment = {"PATH": os.pathsep.join(map(str, search)), "PYTHONPATH": ""}
    environment |= {"PIP_NO_INDEX": "1", "PIP_VERBOSE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    command = ["sh", "-ec", script]
    done = run(command, timeout=timeout, log=folder / "log", env=environment)
    assert done.status == status, done.text
    return done.text
