"""Run the stages of the build.

usage: python -m tools.build compile|execute|render|check|html

"html" runs all of them, in this order, and publishes the site.
"""

import errno
import fcntl
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from .errors import BuildError
from .paths import BUILD, SITE, relative
from .processes import MARKER, forget_steering, kill_marked, stopping

OPEN_IT = f"Open {relative(SITE)}/index.html, or run `make serve`."


@contextmanager
def stage(name):
    """Say that a stage begins, and how long it took."""
    print(f"[{name}]", flush=True)
    started = time.monotonic()
    yield
    print(f"[{name}] done in {time.monotonic() - started:.1f} s", flush=True)


def run_compile():
    from .compile import compile_extension

    with stage("compile"):
        if not compile_extension():
            print("    the extension is up to date", flush=True)


def run_execute(when_compiled=lambda: None):
    from .execute import execute

    with stage("execute"):
        ran, total = execute(when_compiled)
        print(f"    {ran} of {total} samples executed, the others have not changed")
    return ran, total


def run_render(popen, meanwhile=lambda: None):
    from .render import render

    with stage("render"):
        pages = render(popen, meanwhile)
    return pages


def run_only_render():
    from .run_sphinx import loaded_sphinx

    with loaded_sphinx() as popen:
        run_render(popen)


def run_check(check_catalogs=None):
    from .check import check_if_changed

    with stage("check"):
        check_if_changed(check_catalogs)


def check_catalogs(popen):
    # With this, all that the stage "check" needs is loaded while Sphinx runs.
    from .check import catalog_check

    return catalog_check.check(popen)


def run_html():
    from .run_sphinx import loaded_sphinx

    # Sphinx takes a while to load: nothing waits for it, not even the first look.
    with loaded_sphinx() as popen:
        build_if_changed(popen)


def build_if_changed(popen):
    from . import unchanged

    started = time.monotonic()
    sources = unchanged.sources()
    if unchanged.is_good(sources):
        print(f"Nothing has changed since {relative(SITE)} was built.\n{OPEN_IT}")
        return
    unchanged.forget()
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        from .languages import LANGUAGES
        from .precompile import precompile
        from .provenance import write_beside_site
        from .publish import publish

        ran, total = run_execute(when_compiled=precompile)
        generated = unchanged.generated()
        # Sphinx runs in other processes; meanwhile this one can look at the catalogs.
        catalogs = []
        pages = run_render(popen, lambda: catalogs.append(pool.submit(check_catalogs, popen)))
        run_check(catalogs[0].result)
    with stage("publish"):
        publish()
        write_beside_site()
    # What was edited meanwhile may have been too late for some of the stages.
    if (sources, generated) == (unchanged.sources(), unchanged.generated()):
        unchanged.note(sources, generated)
    print(
        f"\n{len(LANGUAGES)} languages ({', '.join(x.url for x in LANGUAGES)}), "
        f"{pages} pages each, {ran} of {total} samples executed, "
        f"{time.monotonic() - started:.0f} s\n"
        f"{OPEN_IT}"
    )


COMMANDS = {
    "compile": run_compile,
    "execute": run_execute,
    "render": run_only_render,
    "check": run_check,
    "html": run_html,
}


@contextmanager
def only_one_build(this_build):
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


def _temporary(build):
    """The folder for all temporary files of a build. Sockets need short paths."""
    return Path(tempfile.gettempdir(), f"build-{build[:12]}")


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    forget_steering()
    this_build = os.urandom(16).hex()
    os.environ[MARKER] = f"{os.environ.get(MARKER, '')} {this_build}"

    def stop(signal_number, frame):
        # At once: the stages wait for their processes before they give way.
        stopping.set()
        kill_marked(this_build)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    untouched = f"The site in {relative(SITE)} was not changed." if SITE.exists() else ""
    try:
        with only_one_build(this_build):
            COMMANDS[sys.argv[1]]()
    except BuildError as error:
        sys.exit(f"\nerror: {error}\n{untouched}".rstrip())
    except KeyboardInterrupt:
        kill_marked(this_build)
        sys.exit(f"\nerror: interrupted\n{untouched}".rstrip())
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT):
            raise
        where = f" {error.filename}" if error.filename else ""
        sys.exit(
            f"\nerror: cannot write{where}: {error.strerror}. Free some space or make "
            f"it writable, then run the command again.\n{untouched}".rstrip()
        )


if __name__ == "__main__":
    main()
