"""Run a command with a time limit, and leave no process of it behind."""

import errno
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from ..project.errors import BuildError

# Every process that a command starts inherits this variable, a list of ids. That
# finds them all in the end, also those that moved to a session of their own.
MARKER = "BUILD_COMMAND_IDS"

# Variables that change the behaviour of Python, its tools, PyTorch, gloo or git. With
# PYTHONOPTIMIZE, for example, no sample would assert anything.
INHERITED_SETTINGS = re.compile(
    r"PYTHON(?!PATH$|HASHSEED$|UTF8$|NOUSERSITE$)|PIP_|SETUPTOOLS_|DISTUTILS_|"
    r"TORCH|PYTORCH_|PET_|GLOO_|TP_|C10_|(OMP|GOMP|KMP|MKL|DNNL|ONEDNN)_|"
    r"MASTER_(ADDR|PORT)$|"
    r"((LOCAL|GROUP|ROLE)_)?(RANK|WORLD_SIZE)$|LOGLEVEL$|"
    r"GIT_(?!CONFIG)|(FORCE|NO)_COLOR$|CLICOLOR|(COLUMNS|LINES)$"
)

# No GPU and no CUDA toolkit: a build has the same result on every machine. PyTorch looks for
# a toolkit where these are not set, and does without where they are empty. With the last it
# asks no driver whether there are devices, and so no driver is too old.
WITHOUT_CUDA = {"CUDA_VISIBLE_DEVICES": "", "CUDA_HOME": "", "CUDA_PATH": ""}
WITHOUT_CUDA["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"

# Set when the build is being interrupted: from then on, nothing is started.
stopping = threading.Event()


@dataclass(frozen=True)
class Outcome:
    status: int | None
    timed_out: bool
    stdout: str
    stderr: str

    @property
    def text(self):
        return self.stdout + self.stderr


def forget_inherited_settings() -> None:
    """Remove these variables of the caller's shell from the environment of all processes."""
    for name in filter(INHERITED_SETTINGS.match, list(os.environ)):
        del os.environ[name]


def run(
    command: Sequence[str | Path],
    *,
    timeout: float,
    log: Path,
    env: Mapping[str, str] | None = None,
    popen: Callable[..., Any] = subprocess.Popen,
) -> Outcome:
    """Run ``command``; write its output to ``log`` and ``log`` + ".stderr".

    ``timeout`` is in seconds, as ``ended`` counts them. A command that is still running then
    gets a SIGABRT, and Python's fault handler writes where it hangs. ``popen`` starts the
    command.
    """
    if stopping.is_set():
        raise BuildError("interrupted")
    marker = os.urandom(16).hex()
    environment = {**os.environ, **(env or {})}
    environment[MARKER] = f"{os.environ.get(MARKER, '')} {marker}"
    errors = log.with_name(log.name + ".stderr")
    log.parent.mkdir(parents=True, exist_ok=True)
    timed_out, process = False, None
    try:
        with open(log, "wb") as out, open(errors, "wb") as err:
            process = popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environment,
            )
            if timed_out := not ended(process, timeout):
                process.send_signal(signal.SIGABRT)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    pass
    finally:
        if process and process.poll() is None:
            with suppress(psutil.NoSuchProcess):
                kill_tree(psutil.Process(process.pid))
        kill_marked(marker)
    status = process.wait()
    if stopping.is_set():  # It was killed, whatever its status says.
        raise BuildError("interrupted")
    outcome = Outcome(
        status,
        timed_out,
        log.read_text(errors="replace"),
        errors.read_text(errors="replace"),
    )
    if outcome.status != 0 and _disk_is_full(outcome, log.parent):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(log.parent))
    return outcome


def ended(process: Any, timeout: float) -> bool:
    """Wait until a process has ended, and return whether it has within ``timeout`` seconds.

    While the machine has more to do than processors, a second counts as the part of it in which
    a process gets one. So other work makes a program late, but never too late.
    """
    left = timeout
    while left > 0:
        since = time.monotonic()
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(left, 1))
            return True
        left -= (time.monotonic() - since) * min(1, (os.cpu_count() or 1) / _load())
    return False


def _load() -> float:
    """Return how many processes want a processor, averaged over a minute, and at least one."""
    return max(1.0, os.getloadavg()[0])


def _disk_is_full(outcome: Outcome, folder: Path) -> bool:
    """Return whether the disk is full; it may then have no room for the message, either."""
    free = shutil.disk_usage(folder).free
    return "No space left on device" in outcome.text or free < 2**16


def kill_marked(marker: str) -> None:
    """Kill every process that was started with ``marker`` in its environment."""
    killed = []
    for process in psutil.process_iter():
        try:
            if marker in process.environ().get(MARKER, "").split():
                killed += kill_tree(process)
        except (psutil.Error, OSError):
            continue
    psutil.wait_procs(killed, timeout=10)


def kill_tree(root: psutil.Process) -> list[psutil.Process]:
    """Kill a process and all its descendants; return them."""
    processes = [root, *root.children(recursive=True)]
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return processes
