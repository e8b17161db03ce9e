"""A new project has the reader's name everywhere, all operations, and tests that pass."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path, PurePath
from unittest import mock

import pytest
import torch
from packaging.requirements import Requirement

from tools.new_backend import TAKEN, next_commands
from tools.pages.new_project import KINDS, STARTER, STARTER_ACCELERATOR, project_files
from tools.processes.run import run
from tools.project.paths import EXTENSIONS, HEADERS, ROOT
from tools.project.published import PUBLISHED

COPIED = ("sim/", "simulated_accelerator/", "wheels/")
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


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def files(kind):
    return project_files("my_net", kind)


OWN = {  # what the reader replaces, and the class in it
    "transport": ("src/my_net_transport.hpp", "class MyNetTransport final : public"),
    "messages": ("src/my_net_messages.hpp", "class MyNetMessages final : public"),
    "accelerator": ("src/registration.cpp", "struct OptionsMyNet final : "),
}


def test_every_name_is_the_readers(kind, files):
    own = own_texts(files)
    assert not [path for path, text in own.items() if re.search("acme|dummy", path + text, re.I)]
    path, text = OWN[kind]
    assert text in own[path]
    sources = {x for x in files if x.startswith("src/")}
    assert sources == {path, "src/registration.cpp"}
    if kind == "accelerator":
        assert {"cuda/library.hpp", "sim/library.hpp"} <= files.keys()
    assert '\nname = "my-net-collectives"\n' in own["pyproject.toml"]
    assert '\nmy_net = "my_net_collectives:register"\n' in own["pyproject.toml"]
    assert {"src/registration.cpp", "my_net_collectives/__init__.py"} <= files.keys()
    assert "LICENSE" in files


def test_a_project_for_an_accelerator_breaks_no_rule():
    """What this site only demonstrates stays here."""
    files = project_files("my_net", "accelerator")
    texts = [text.decode() for path, text in files.items() if path.startswith("sim/")]
    texts += [path.read_text() for path in HEADERS.rglob("*.hpp")]
    assert len(texts) > 20 and not [x for x in texts if re.search("broken|simccl|keeps\\(", x)]


def test_the_frame_and_the_suite_are_requirements_whose_wheels_are_there(files):
    """And nothing of them is copied: pip brings a newer version."""
    metadata = tomllib.loads(files["pyproject.toml"].decode())
    required = metadata["build-system"]["requires"]
    required += metadata["project"]["optional-dependencies"]["test"]
    wanted = {x.name.replace("-", "_"): x for x in map(Requirement, required)}
    wheels = [PurePath(path).name.split("-")[:2] for path in files if path.startswith("wheels/")]
    assert {name for name, _ in wheels} == {"c10d_frame", "c10d_conformance"}
    assert all(wanted[name].specifier.contains(version) for name, version in wheels)
    copies = {path.name for path in HEADERS.rglob("*.hpp")} & {PurePath(x).name for x in files}
    assert copies <= {"library.hpp"}, "that of an accelerator has the same name"


@pytest.mark.parametrize(
    "folder", [STARTER, STARTER_ACCELERATOR, *EXTENSIONS], ids=lambda folder: folder.name
)
def test_a_build_needs_no_cuda_toolkit_and_is_the_same_with_a_gpu(folder, monkeypatch):
    """Most readers with a GPU have the driver and PyTorch, and no toolkit."""
    monkeypatch.setenv("BUILD_FOR", "cuda")  # of starter_accelerator/
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


def test_a_folder_without_a_device_is_named(monkeypatch):
    script = STARTER_ACCELERATOR / "setup.py"
    monkeypatch.setenv("BUILD_FOR", "npu")
    with pytest.raises(SystemExit, match="BUILD_FOR=npu: the folder npu has no device.hpp"):
        exec(compile(script.read_text(), script, "exec"), {"__file__": str(script)})


def test_nccl_is_the_one_that_pip_has_installed(monkeypatch):
    script = STARTER_ACCELERATOR / "setup.py"
    monkeypatch.setenv("BUILD_FOR", "cuda")
    with (
        mock.patch("torch.utils.cpp_extension.CUDA_HOME", None),
        mock.patch("setuptools.setup") as setup,
    ):
        exec(compile(script.read_text(), script, "exec"), {"__file__": str(script)})
    [extension] = setup.call_args.kwargs["ext_modules"]
    [library] = extension.extra_objects
    assert library.endswith("nvidia/nccl/lib/libnccl.so.2")
    assert torch.version.cuda is None or Path(library).is_file()
    assert str(STARTER_ACCELERATOR / "cuda") in extension.include_dirs


def test_it_is_written_whole_and_alike_each_time(tmp_path, kind, files):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "new" / "folder", tmp_path / "empty"):
        done = new_backend("my_net", folder, kind)
        assert done.returncode == 0, done.stderr
        assert files_in(folder) == files
        assert shlex.split(done.stdout.splitlines()[2]) == ["cd", str(folder)]
    assert len(list(tmp_path.iterdir())) == 2, "nothing else is left"


@pytest.mark.parametrize("name", ["a", LONG])
def test_ruff_accepts_it(tmp_path, name, kind):
    assert new_backend(name, tmp_path / "new", kind).returncode == 0
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
    commands = next_commands(files)
    begin = steps.index(commands[0])
    assert steps[begin : begin + 3] == commands
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


@pytest.mark.parametrize("kind", ["cuda", "Messages", "messages "])
def test_a_kind_that_is_refused(tmp_path, kind):
    refused(f"KIND={kind}: there are projects for KIND=", "acme", tmp_path / "new", kind)
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
    environment = {**os.environ, "NAME": "of_this_machine", "KIND": "too", "MAKEFLAGS": ""}
    for variables, expected in (
        ([], '"" "" ""'),
        (["NAME=acme", "FOLDER=../x"], '"acme" "../x" ""'),
        (["NAME=acme", "KIND=messages"], '"acme" "" "messages"'),
    ):
        done = subprocess.run(
            [*command, *variables], cwd=ROOT, env=environment, capture_output=True
        )
        assert done.stdout.decode().endswith(f"tools.new_backend {expected}\n")


CHECKS = {  # tests/conformance runs all checks of the others' transport and library
    "transport": ["lifecycle.names", "lifecycle.entry_point", "features.ddp_trains"],
    "messages": ["lifecycle.", "values.", "messages.", "failure.", "features."],  # only here
    "accelerator": ["lifecycle.names", "streams.late_input", "features.ddp_trains"],
}
CUDA = "build_ext --build-temp build/cuda --build-lib build/cuda"


@pytest.mark.slow
def test_the_printed_commands_work_and_a_wrong_claim_fails(tmp_path, kind):
    """In an environment with our PyTorch; without a package index."""
    done = new_backend("my_net", tmp_path / "project", kind)
    commands = [line.strip() for line in done.stdout.splitlines() if line.startswith("    ")]
    assert len(commands) == 4, done.stdout
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    [packages] = tmp_path.glob("venv/lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(str(Path(torch.__file__).parents[1]))

    go, tools, install, test = commands
    output = shell(tmp_path, f"{go}\n{tools}\n{install}", timeout=600)
    assert "-Wall -Wextra" in output and ": warning:" not in output  # of the compiler
    claims = tmp_path / "project" / "claims.txt"
    chosen = CHECKS[kind]
    lines = claims.read_text().splitlines(keepends=True)
    some = "".join(x for x in lines if x.startswith(tuple(chosen)))
    claims.write_text(some)
    test += f" -k '{' or '.join(chosen)}'"
    assert " 0 of " in shell(tmp_path, f"{go}\n{test}")
    claims.write_text(some.replace("names: 2", "names: 3"))
    assert "names: 3 cases claimed, 2 right" in shell(tmp_path, f"{go}\n{test}", status=1)
    if kind == "accelerator" and torch.version.cuda:
        compile_and_link_nccl(tmp_path, go)


def compile_and_link_nccl(tmp_path, go):
    """Python resolves all symbols of a module when it imports it. With a GPU, one rank runs."""
    output = shell(tmp_path, f"{go}\nBUILD_FOR=cuda python3 setup.py {CUDA}", timeout=600)
    assert "-Wall -Wextra" in output and ": warning:" not in output  # of the compiler
    [module] = tmp_path.glob("project/build/cuda/my_net_collectives/*.so")
    name = module.name.partition(".")[0]
    load = f"import torch, {name}; print(torch.distributed.Backend.backend_capability)"
    path = f"PYTHONPATH={module.parent}"
    assert "'my_net': ['cuda']" in shell(tmp_path, f"{path} python3 -c '{load}'")
    assert b"libnccl.so.2" in module.read_bytes()
    if torch.cuda.is_available():
        suite = f"--backend my_net --device cuda --import {name} --ranks 1 -k 'values or streams'"
        assert "0 of" in shell(tmp_path, f"{path} c10d-conformance {suite}")


def shell(folder, script, *, status=0, timeout=600):
    """Run commands as printed, in the environment; return their output."""
    search = [folder / "venv" / "bin", Path(sys.executable).parent, os.environ["PATH"]]
    environment = {"PATH": os.pathsep.join(map(str, search)), "PYTHONPATH": ""}
    environment |= {"PIP_NO_INDEX": "1", "PIP_VERBOSE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "1"  # as for readers: it finds the device sim
    command = ["sh", "-ec", script]
    done = run(command, timeout=timeout, log=folder / "log", env=environment)
    assert done.status == status, done.text
    return done.text
