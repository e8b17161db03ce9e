"""Run the suite of conformance/ on backends with two ranks, and keep how many cases are right.

usage: python -m tools.accept_scoreboard [BACKEND]

BACKEND is a name in the table below; without it, all are run, which takes minutes each. Backends
of others are installed from wheels of PyPI into a folder of _build. One that cannot be installed
here, or imported with the PyTorch of this project, gets a row with the problem.
"""

import csv
import json
import os
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from .processes.run import WITHOUT_CUDA, Outcome, forget_inherited_settings, run
from .project.errors import BuildError, readable, run_command
from .project.paths import BUILD, FRAME, GALLERY, INSTALLED_EXTENSIONS, LOGS, SUITE, relative

TABLE = GALLERY / "communicate" / "test_your_backend" / "scoreboard.csv"
VERDICTS = ["right", "refused", "wrong", "crash", "hang"]
COLUMNS = ["backend", "version", *VERDICTS, "failing", "date", "command", "problem"]
FOLDER = BUILD / "scoreboard"
TIMEOUT = 3600  # seconds, for one backend
LIMIT = 20  # seconds of a hang: twice as much as usual, for a machine that does much else


@dataclass(frozen=True)
class Backend:
    """A backend, and how a program gets it."""

    name: str
    module: str | None = None
    device: str | None = None
    package: str | None = None  # on PyPI, with its version

    @property
    def command(self) -> list[str]:
        """The command line of the suite."""
        command = ["c10d-conformance", "--backend", self.name]
        command += ["--import", self.module] if self.module else []
        command += ["--device", self.device] if self.device else []
        return [*command, "--ranks", "2"]


BACKENDS = [
    Backend("gloo"),
    Backend("fake", "torch.testing._internal.distributed.fake_pg"),
    Backend("store", "store_collectives"),
    Backend("tcp", "tcp_collectives"),
    Backend("shm", "shm_collectives"),
    Backend("mpich", "mpi_collectives"),
    Backend("simccl", "stream_collectives", "sim"),
    Backend("commux", "commux", package="commux==0.2.1"),
    Backend("mccl", "mccl", package="mccl==6.8.0"),
]


def main(only: str = "") -> None:
    chosen = [x for x in BACKENDS if only in ("", x.name)]
    if not chosen:
        names = ", ".join(x.name for x in BACKENDS)
        raise BuildError(f"BACKEND={only}: the scoreboard has {names}")
    forget_inherited_settings()
    for backend in chosen:
        new = row(backend)
        print(" ".join(f"{key}={value}" for key, value in new.items() if value), flush=True)
        rows = committed() | {backend.name: new}
        write([rows[x.name] for x in BACKENDS if x.name in rows])
    print(f"wrote {relative(TABLE)}; run `make execute` and `make accept-outputs` for its page")


def committed() -> dict[str, dict[str, str]]:
    """Return the rows of the table, by backend."""
    if not TABLE.is_file():
        return {}
    return {row["backend"]: row for row in csv.DictReader(TABLE.read_text().splitlines())}


def write(rows: list[dict[str, str]]) -> None:
    """Write the table."""
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def row(backend: Backend) -> dict[str, str]:
    """Run the suite on a backend and return its row."""
    new = {"backend": backend.name, "command": " ".join(backend.command)}
    new["date"] = time.strftime("%Y-%m-%d", time.gmtime())
    of_torch = not backend.module or backend.module.startswith("torch.")
    new["version"] = f"PyTorch {version('torch')}" if of_torch else "this site"
    places = [SUITE, INSTALLED_EXTENSIONS, FRAME]
    if backend.package:
        new["version"] = backend.package.partition("==")[2]
        places.append(FOLDER / backend.name)
        done = install(backend.package, places[-1])
        if done.status != 0:
            return new | {"problem": last_line(done)}
    report = FOLDER / f"{backend.name}.json"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    suite = [sys.executable, "-m", "c10d_conformance", *backend.command[1:], "--limit", str(LIMIT)]
    environment = {"PYTHONPATH": os.pathsep.join(map(str, places)), "OMP_NUM_THREADS": "1"}
    environment |= WITHOUT_CUDA | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    log = LOGS / f"scoreboard-{backend.name}.log"
    done = run([*suite, "--report", report], timeout=TIMEOUT, log=log, env=environment)
    if not report.is_file():
        if not backend.package:
            raise BuildError(f"the suite ends without a report on {backend.name}:\n{done.text}")
        return new | {"problem": last_line(done)}
    result = json.loads(report.read_text())
    failing = [x["id"] for x in result["checks"] if x["verdict"] in VERDICTS[2:]]
    counts = {verdict: str(result["counts"][verdict]) for verdict in VERDICTS}
    return new | counts | {"failing": " ".join(dict.fromkeys(failing))}


def install(package: str, folder: Path) -> Outcome:
    """Install a wheel of PyPI into a folder, without PyTorch."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--no-deps"]
    command: list[str | Path] = [*pip, "--only-binary", ":all:", "--target", folder, package]
    return run(command, timeout=TIMEOUT, log=LOGS / f"scoreboard-pip-{folder.name}.log")


def last_line(done: Outcome) -> str:
    """Return the message with which a command ended, without its name."""
    return readable(done.stderr).strip().splitlines()[-1].partition(": ")[2]


if __name__ == "__main__":
    run_command(main, __doc__)
