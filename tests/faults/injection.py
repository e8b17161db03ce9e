"""Put faults into copies of the project, and run the commands that must report them.

The faults are the rows of faults.toml. Those with the same ``run`` go into one copy and are
reported in one run, because all our commands report everything that they find. A fault that
would hide others, or change a whole build, is ``alone``: it has a copy and a run of its own.
"""

import os
import shutil
import subprocess
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from tools.project.paths import ROOT

TABLE = Path(__file__).with_name("faults.toml")
NOT_COPIED = shutil.ignore_patterns("precompiled", ".git", ".venv*", "__pycache__", ".pytest_cache")
PYTEST = ["pytest", "-q", "-rf", "--timeout=60", "-p", "no:cacheprovider"]
TIMEOUT = 900  # seconds
noticed = []  # Each fault, whether it was noticed, and how long that took.
# What is run, one after the other until something fails.
COMMANDS = {
    "compile": [["tools.compile"]],
    "execute": [["tools.execute"]],
    "render": [["tools.render"]],
    "check": [["tools.check"]],
    "catalogs": [["tools.i18n_check"]],
    "tests": [PYTEST],
    "compile and test": [["tools.compile"], PYTEST],
    "compile and load": [["tools.compile"], [*PYTEST, "tests/extension"]],
}


@dataclass(frozen=True)
class Fault:
    id: str
    area: str
    run: str  # Of COMMANDS, or the module and arguments of a command.
    message: str  # A regular expression that the command's output must match.
    file: str = ""
    old: str = ""  # Stands there once, and is replaced by:
    new: str = ""
    append: str = ""
    delete: bool = False
    alone: bool = False
    test: str = ""  # The test that must fail.
    environment: dict = field(default_factory=dict)
    survives: str = ""  # Why nothing notices it.

    @property
    def batch(self):
        return (self.run, self.id if self.alone else None)

    def inject(self, root):
        path = root / self.file
        if self.delete:
            found = sorted(root.glob(self.file))
            assert found, f"{self.id}: {self.file} does not exist"
            for path in found:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        elif self.append:
            path.parent.mkdir(exist_ok=True)
            with open(path, "a") as file:
                file.write(self.append)
        elif self.file:
            self.require_place(root)
            path.write_text(path.read_text().replace(self.old, self.new))

    def require_place(self, root):
        """Raise AssertionError if the fault does not fit into the project at ``root``."""
        if self.old:
            found = (root / self.file).read_text().count(self.old)
            assert found == 1, f"{self.id}: {self.file} has this text {found} times"
        if self.test:
            file, name = self.test.partition("[")[0].split("::")
            assert f"def {name}(" in (root / file).read_text(), f"{self.id}: no {self.test}"


def faults():
    with open(TABLE, "rb") as file:
        return [Fault(**row) for row in tomllib.load(file)["fault"]]


def copy_project(source, target):
    """Copy the project, with what was built, but without the environment."""
    shutil.copytree(source, target, symlinks=True, ignore=NOT_COPIED)
    (target / ".venv").symlink_to((ROOT / ".venv").resolve())
    return target


@dataclass(frozen=True)
class Outcome:
    status: int
    output: str
    seconds: float


def run(root, name, tests=(), environment=None):
    """Run a command of COMMANDS in a copy of the project."""
    started, output = time.monotonic(), ""
    commands = COMMANDS.get(name) or [name.split()]
    for command in commands:
        arguments = [*command, *(tests if command is PYTEST else [])]
        done = subprocess.run(
            [root / ".venv/bin/python", "-m", *arguments],
            cwd=root,
            env={**os.environ, "PYTHONPATH": "", **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
        )
        output += done.stdout
        if done.returncode:
            break
    return Outcome(done.returncode, output, time.monotonic() - started)


def run_with(faults, healthy, root):
    """Inject faults of one batch into a copy of a healthy project, and run."""
    copy_project(healthy, root)
    environment = {}
    for fault in faults:
        fault.inject(root)
        environment |= fault.environment
    tests = sorted({fault.test for fault in faults if fault.test})
    outcome = run(root, faults[0].run, tests, environment)
    shutil.rmtree(root)
    return outcome
