"""Write a project with a backend of the reader's own, which has all operations from the start.

usage: python -m tools.new_backend NAME [FOLDER [KIND]]

Without FOLDER, the project is NAME-collectives, beside this repository. KIND is what you have: a
transport of CPU tensors, which is the default, a library that has messages only, or an accelerator.
"""

import keyword
import re
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

from .pages.new_project import KINDS, distribution, project_files
from .project.errors import BuildError, run_command
from .project.paths import ROOT

NAME = re.compile("[a-z][a-z0-9]*(_[a-z0-9]+)*")
# The backends that c10d and its tests register, and those of the tutorial.
TAKEN = {"fake", "gloo", "mpi", "nccl", "threaded", "ucc", "undefined", "xccl"}
TAKEN |= {
    "dummy",
    "mpich",
    "shm",
    "sim",
    "simccl",
    "simulated_accelerator",
    "store",
    "stream",
    "tcp",
}


def check_name(name: str) -> None:
    """Raise BuildError unless a backend can have the name."""
    if not name:
        raise BuildError("name the backend: make new-backend NAME=acme")
    if not NAME.fullmatch(name):
        raise BuildError(
            f"NAME={name}: a name has lower-case letters and digits, begins with a letter, "
            "and may have single underscores between them: [a-z][a-z0-9_]*"
        )
    if keyword.iskeyword(name):
        raise BuildError(f"NAME={name} is a keyword of Python: choose another name")
    if name in TAKEN:
        raise BuildError(f"NAME={name}: there is a backend of this name: choose another one")


def check_kind(kind: str) -> None:
    """Raise BuildError unless there is such a project."""
    if kind not in KINDS:
        *others, last = (f"KIND={x}" for x in KINDS)
        raise BuildError(f"KIND={kind}: there are projects for {', '.join(others)} and {last}")


def check_folder(folder: Path) -> None:
    """Raise BuildError unless the folder is new or empty, and outside this repository."""
    if folder.is_relative_to(ROOT):
        raise BuildError(f"FOLDER={folder} is inside this repository: choose one outside")
    if len(str(folder).split()) > 1:
        raise BuildError(
            f"FOLDER={folder} contains a space, which PyTorch's build tools cannot handle: "
            "choose another one"
        )
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise BuildError(f"FOLDER={folder} exists and is no empty folder: choose another one")


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Write all files into a folder that is new or empty, or nothing at all."""
    top = folder  # The first folder of the path that is new, which is renamed in the end.
    while not top.parent.exists():
        top = top.parent
    with TemporaryDirectory(prefix=".new-backend-", dir=top.parent) as temporary:
        whole = Path(temporary, top.name)
        for name, content in files.items():
            path = whole / folder.relative_to(top) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        whole.rename(top)


def next_commands(files: dict[str, bytes]) -> list[str]:
    """Return the commands that the README of the project begins with."""
    block = files["README.md"].decode().partition("```sh\n")[2]
    return block.partition("```")[0].splitlines()


def new_backend(name: str, folder: str = "", kind: str = "") -> None:
    """Write the project; print what to run in it. Raises BuildError if nothing was written."""
    check_name(name)
    check_kind(kind := kind or "transport")
    files = project_files(name, kind)
    path = Path(folder or ROOT.parent / distribution(name))
    try:
        path = path.expanduser().resolve()
        check_folder(path)
        write(path, files)
    except (OSError, RuntimeError) as error:
        raise BuildError(f"cannot write {path}: {getattr(error, 'strerror', error)}") from None
    print(f"{path} has the backend {name}. Run, in an environment with PyTorch:\n")
    for command in [f"cd {shlex.quote(str(path))}", *next_commands(files)]:
        print(f"    {command}")


if __name__ == "__main__":
    run_command(new_backend, __doc__)
