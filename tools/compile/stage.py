"""Stage "compile": build and install the extension into _build/extension."""

import os
import re
import shutil
import sys
import time
from fnmatch import fnmatch

from ..processes.run import WITHOUT_CUDA, run
from ..project.errors import BuildError
from ..project.paths import BUILD, EXTENSION, INSTALLED_EXTENSION, LOGS, relative
from ..state.digests import digest, files_below, is_made, note_made
from . import headers
from .toolchain import compiled_with

TIMEOUT = 600  # seconds; it takes about 30
KEY_FILE = INSTALLED_EXTENSION / ".key"
SECONDS_FILE = INSTALLED_EXTENSION / ".seconds"
LEFTOVERS = ("build", "*.egg-info", "__pycache__", "*.so")


def extension_sources():
    """The files of the extension, without what a build by hand left among them."""
    return [
        path
        for path in files_below(EXTENSION)
        if not any(
            fnmatch(part, pattern)
            for part in path.relative_to(EXTENSION).parts
            for pattern in LEFTOVERS
        )
    ]


def extension_key():
    """Digest of all that the compiled extension depends on."""
    return digest(extension_sources(), *compiled_with())


def compile_extension():
    """Compile if anything changed. Return whether it did."""
    key = extension_key()
    if is_made(KEY_FILE, key, _installed_files()):
        return False
    started = time.monotonic()
    # Built from a copy, so that the build leaves nothing beside the sources.
    work = BUILD / "compile"
    shutil.rmtree(work, ignore_errors=True)
    source, target = work / EXTENSION.name, work / "installed"
    ignore = shutil.ignore_patterns(*LEFTOVERS)
    shutil.copytree(EXTENSION, source, ignore=ignore)
    headers_key = headers.key(source, *compiled_with())
    variables = headers.make_use(source, headers_key)
    # As pip does, which first runs setup.py, and so imports PyTorch, for the name alone.
    command = [sys.executable, "-m", "tools.compile.wheel", source, target]
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    log = LOGS / "compile.log"
    done = run(command, timeout=TIMEOUT, log=log, env={"PATH": path, **WITHOUT_CUDA, **variables})

    text = done.text.replace(str(source), relative(EXTENSION))
    if done.timed_out:
        raise BuildError(f"{relative(EXTENSION)}: still compiling after {TIMEOUT} s")
    if done.status != 0:
        raise BuildError(
            f"{relative(EXTENSION)} does not compile:\n"
            f"{_interesting_lines(text)}\nThe whole output: {relative(log)}"
        )
    warnings = [line.strip() for line in text.splitlines() if ": warning: " in line]
    if warnings:
        raise BuildError(f"{relative(EXTENSION)} compiles with warnings:\n" + "\n".join(warnings))
    (target / SECONDS_FILE.name).write_text(f"{time.monotonic() - started:.1f}\n")
    shutil.rmtree(INSTALLED_EXTENSION, ignore_errors=True)
    target.rename(INSTALLED_EXTENSION)
    note_made(KEY_FILE, key, _installed_files())
    headers.keep(source, headers_key)
    shutil.rmtree(work)
    return True


def compile_seconds():
    """How long the last compilation took, or None."""
    return float(SECONDS_FILE.read_text()) if SECONDS_FILE.is_file() else None


def _installed_files():
    return [path for path in files_below(INSTALLED_EXTENSION) if path != KEY_FILE]


def _interesting_lines(text):
    """The compiler's errors, or else the end of the output."""
    lines = [line.strip() for line in text.splitlines()]
    errors = [
        line
        for line in lines
        if re.search(
            r"\S+:\d+(:\d+)?: (fatal )?error: |^ninja: error: |No space left on device", line
        )
    ]
    return "\n".join(errors[:10] or lines[-15:])
