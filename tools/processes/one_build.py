"""Run a stage or the whole build: one at a time in a clone, with an orderly end."""

import errno
import fcntl
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from ..project.errors import BuildError, arguments_for
from ..project.paths import BUILD, ROOT, SITE, relative
from .run import MARKER, forget_inherited_settings, kill_marked, kill_tree, stopping


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Print that a stage begins, and how long it took."""
    print(f"[{name}]", flush=True)
    started = time.monotonic()
    yield
    print(f"[{name}] done in {time.monotonic() - started:.1f} s", flush=True)


@contextmanager
def only_one_build(this_build: str) -> Iterator[None]:
    """Hold the clone's build lock; a second build waits and says so."""
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / "build.lock", "a+", errors="replace") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another build of this clone is running; waiting for it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        # A build that was killed has left its name there, and maybe more.
        lock.seek(0)
        if re.fullmatch("[0-9a-f]{32}", killed := lock.read()):
            kill_marked(killed)
            shutil.rmtree(_temporary(killed), ignore_errors=True)
        lock.truncate(0)
        lock.write(this_build)
        lock.flush()
        temporary = _temporary(this_build)
        temporary.mkdir(mode=0o700)
        os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
        try:
            yield
        finally:
            os.environ["TMPDIR"] = tempfile.tempdir = str(temporary.parent)
            shutil.rmtree(temporary, ignore_errors=True)
            lock.truncate(0)


def _temporary(build: str) -> Path:
    """Return the folder for all temporary files of a build. The paths of sockets must be short."""
    return Path(tempfile.gettempdir(), f"build-{build[:12]}")


def main(work: Callable[..., object], *, usage: str | None) -> None:
    """Call ``work`` with the arguments of the command line; end with one message if it fails.

    Shows ``usage`` if ``work`` does not take these arguments.
    """
    arguments = arguments_for(work, usage)
    forget_inherited_settings()
    this_build = os.urandom(16).hex()
    os.environ[MARKER] = f"{os.environ.get(MARKER, '')} {this_build}"

    def stop(signal_number: int, frame: object) -> None:
        # End the processes now: the stages wait for them before they end.
        stopping.set()
        _end_all(this_build)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    untouched = f"The site in {relative(SITE)} was not changed." if SITE.exists() else ""
    try:
        with only_one_build(this_build):
            work(*arguments)
    except KeyboardInterrupt:
        _end_all(this_build)
        message = "interrupted"
    except (BuildError, ModuleNotFoundError, OSError) as error:
        if not (text := _message_of(error)):
            raise
        message = text
    else:
        return
    sys.exit(f"\nerror: {message}\n{untouched}".rstrip())


def _end_all(build: str) -> None:
    kill_marked(build)
    killed = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            killed += kill_tree(child)
    psutil.wait_procs(killed, timeout=10)


def _message_of(error: BuildError | ModuleNotFoundError | OSError) -> str | None:
    """Return what a user should know of an error, or None if it is a fault of these tools."""
    if isinstance(error, BuildError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        name = error.name or ""
        if (ROOT / name.partition(".")[0]).exists():  # A module of this project.
            return None
        return (
            f"{sys.prefix} has no module {name}. Remove this folder, then run the command again: "
            "it is installed anew."
        )
    if error.errno not in (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT):
        return None
    where = f" {error.filename}" if error.filename else ""
    return (
        f"cannot write{where}: {error.strerror}. Free some space or make it writable, then run "
        "the command again."
    )
