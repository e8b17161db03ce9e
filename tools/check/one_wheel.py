"""Build one wheel of a new project for all releases of PyTorch, and use it with each.

The results are compared with docs/communicate/ship_it/wheel.txt, which a page shows because a
build of the site has one release only. The tags may differ: they name Python and the system.
"""

import difflib
import json
import os
import re
import shutil
import sys
import textwrap
import venv
import zipfile
from pathlib import Path

from ..pages.new_project import project_files
from ..processes.progress import progress
from ..processes.run import WITHOUT_CUDA, run
from ..project.errors import BuildError
from ..project.paths import BUILD, DOCS, relative
from ..project.releases import RELEASES, Release
from .releases import environment_of, install

RECORD = DOCS / "communicate" / "ship_it" / "wheel.txt"
FOLDER = BUILD / "wheel"
PROJECT = FOLDER / "project"
TIMEOUT = 1800  # seconds, for one step
TAGS = re.compile(r"cp\d+-cp\d+-\w+|cpython-\w+-\w+-linux-gnu")
WIDTH = 90  # of the record
PROGRAM = """
import sys
from importlib.metadata import requires

import acme_collectives
import torch
from torch import distributed, multiprocessing


def rank_of_two(rank, file):
    distributed.init_process_group("acme", f"file://{file}", rank=rank, world_size=2)
    tensor = torch.tensor(rank + 1)
    distributed.all_reduce(tensor)
    if rank == 0:
        print("requires:", requires("acme-collectives")[0])
        print("imported:", acme_collectives.Options.__module__)
        print("all_reduce of 1 and 2:", tensor.item())
    distributed.destroy_process_group()


if __name__ == "__main__":
    multiprocessing.spawn(rank_of_two, sys.argv[1:], nprocs=2)
"""


def try_wheel(*, accept: bool) -> None:
    """Build and use the wheel; compare what happens with the record, or ``accept`` it.

    Raises BuildError if a step fails, or if the results differ from the record.
    """
    text = "\n".join(results()) + "\n"
    if accept:
        RECORD.write_text(text)
        print(f"wrote {relative(RECORD)}")
        return
    before, now = (TAGS.sub("…", x).splitlines() for x in (RECORD.read_text(), text))
    names = relative(RECORD), "this run"
    if lines := [f"    {x}" for x in difflib.unified_diff(before, now, *names, lineterm="")]:
        raise BuildError(
            "the results differ from the record:\n"
            + "\n".join(lines)
            + "\nIf the new results are right, accept them with `make accept-wheel`."
        )


def results() -> list[str]:
    """Build the wheel, use it with each release, and return the lines of the record."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, content in project_files("acme").items():
        path = PROJECT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (FOLDER / "program.py").write_text(PROGRAM)
    pythons = {release: python_with(release) for release in RELEASES}
    must_run("build the wheel", sys.executable, PROJECT / "build_wheel.py", *pythons.values())
    [wheel] = PROJECT.glob("dist/*.whl")
    lines = [wheel.name, *contents(wheel)]
    for release, python in pythons.items():
        must_run(
            f"install with {release.version}", python, *"-m pip install acme-collectives".split()
        )
        lines += ["", f"PyTorch {release.version}", *used(release, python)]
    return [*lines, *used_without_module(release, python)]


def contents(wheel: Path) -> list[str]:
    """Return lines with the files of the wheel, and with the libraries that it leaves out.

    Raises BuildError if the wheel needs a newer system than its name says.
    """
    audit = "-m auditwheel show --json".split()
    shown = json.loads(must_run("auditwheel show", sys.executable, *audit, wheel))
    if shown["sym_tag"] not in wheel.name:
        raise BuildError(f"{wheel.name} needs a system for {shown['sym_tag']}")
    with zipfile.ZipFile(wheel) as archive:
        files = [name for name in archive.namelist() if not name.endswith("/")]
    outside = f"libraries outside: {', '.join(sorted(shown['external_libs']))}"
    return [f"    {x}" for x in [*files, outside]]


def python_with(release: Release) -> Path:
    """Return the Python of a new environment, which borrows the packages of a release."""
    install(release)
    borrowed = environment_of(release) / "bin" / "python"
    folder = FOLDER / release.version
    venv.create(folder, symlinks=True)
    ask = "import torch; print(torch.__path__[0])"
    where = must_run(f"find {release.version}", borrowed, "-c", ask).strip()
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(str(Path(where).parent))
    python = folder / "bin" / "python"
    must_run(f"frame for {release.version}", python, *"-m pip install c10d-frame".split())
    return python


def used(release: Release, python: Path) -> list[str]:
    """Return the lines that the program prints with a release."""
    group = FOLDER / f"{release.version}.group"
    group.unlink(missing_ok=True)
    printed = must_run(f"use with {release.version}", python, "program.py", group)
    return [f"    {line}" for line in printed.splitlines()]


def used_without_module(release: Release, python: Path) -> list[str]:
    """Remove the module of a release, and type the command that the error then names."""
    name = f"_for_torch_{release.series.replace('.', '_')}.*"
    [module] = (FOLDER / release.version).glob(f"lib/python*/site-packages/acme_collectives/{name}")
    module.unlink()
    printed = must_run("use without module", python, "-c", "import acme_collectives", status=1)
    error = printed.strip().splitlines()[-1]
    command = error[error.index("python3 -m pip") :]
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    must_run("compile the source distribution", "sh", "-ec", command, PATH=path)
    return [
        "",
        f"PyTorch {release.version}, without its module",
        *textwrap.wrap(
            error,
            WIDTH,
            initial_indent=" " * 4,
            subsequent_indent=" " * 8,
            break_on_hyphens=False,
        ),
        "",
        f"PyTorch {release.version}, after this command",
        *used(release, python),
    ]


def must_run(name: str, *command: str | Path, status: int = 0, **variables: str) -> str:
    """Run a command outside the project, whose package would be imported in place of the wheel.

    Returns its output. Raises BuildError if it ends with another status.
    """
    log = FOLDER / "logs" / f"{name.replace(' ', '-')}.log"
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"{PROJECT}/wheels {PROJECT}/dist"}
    with progress(lambda: name):
        done = run(
            ["env", "-C", FOLDER, *command],
            timeout=TIMEOUT,
            log=log,
            env={**WITHOUT_CUDA, **index, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables},
        )
    if done.status != status:
        raise BuildError(f"{name}: {done.text[-4000:]}\nThe whole output: {relative(log)}")
    return done.text
