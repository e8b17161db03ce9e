"""Precompile the headers of libraries, which are nearly all that the compiler reads.

A compilation leaves files that make the next one faster, as long as only our own code changes,
and neither the headers that it includes nor the compiler's options.
_build/precompiled/EXTENSION/KEY contains:

    headers.hpp      the lines of our sources that include headers in angle brackets
    headers.hpp.gch  these headers, precompiled
    build/           ninja's file, which names the compiler and its options, and with which a
                     compilation begins while setup.py still imports PyTorch
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

from ..processes.run import run
from ..project.paths import BUILD, LOGS, ROOT, relative
from ..state.digests import digest, files_below
from ..state.records import Record

FOLDER = BUILD / "precompiled"
HEADERS, PRECOMPILED = "headers.hpp", "headers.hpp.gch"
NINJA = "build/*/build.ninja"  # Where setup.py puts it.
FLAGS = "flags"  # Beside setup.py: options of the compiler that are not on its command line.
TIMEOUT = 600  # seconds; it takes about 35
SPACE = 2**31  # bytes that must be free; it takes a quarter of that
INCLUDE = re.compile(r"^#include <.+>$", re.M)
ONE_AT_A_TIME = threading.Lock()
# What could change the meaning of a header that is included after it.
OTHER_DIRECTIVE = re.compile(r"^\s*#(?!include\b|pragma once\b)", re.M)


def key(project, *facts):
    """Return a digest of all that the headers, in the copy of the extension, depend on."""
    scripts = [path for path in files_below(project) if path.suffix in {".py", ".toml"}]
    scripts.append(Path(__file__))
    # Clang refuses to use headers that were installed again after they had been precompiled.
    installed = Path(find_spec("torch").origin).stat().st_mtime_ns
    # ROOT counts, because ninja's file is full of paths.
    return digest(scripts, _includes(project), ROOT, installed, *facts)


def make_use(project, key):
    """Let the copy of the extension be compiled with the precompiled headers, if any.

    Returns the variables for that. The command line is always the same: the compiler reads
    the flag, if any, from a file.
    """
    flags, folder = project / FLAGS, FOLDER / project.name / key
    flags.write_text("")
    if _is_precompiled(folder):
        flags.write_text(f'-include "{folder / HEADERS}"\n')
        shutil.copytree(folder / "build", project / "build")
    return {"CPPFLAGS": f"{os.environ.get('CPPFLAGS', '')} {shlex.quote(f'@{flags}')}"}


def keep(project, key):
    """Keep the files that the compilation of a copy of the extension leaves, and none older."""
    if (project / FLAGS).read_text():  # It was compiled with precompiled headers.
        return
    folder = FOLDER / project.name / key
    shutil.rmtree(folder.parent, ignore_errors=True)
    for file in project.glob(NINJA):
        kept = folder / file.relative_to(project)
        kept.parent.mkdir(parents=True)
        shutil.copyfile(file, kept)
        (folder / HEADERS).write_text(_includes(project))


def precompile():
    """Precompile the headers of the last compilations, unless that was done.

    The compiled copy of the extension has been removed. So the compiler finds none of the
    extension's own headers, which may differ the next time. Each extension can be followed by
    a call of its own, in a thread: the second call waits for the first.
    """
    with ONE_AT_A_TIME:
        for ninja_file in FOLDER.glob(f"*/*/{NINJA}"):
            folder = ninja_file.parents[2]
            if not _is_precompiled(folder) and shutil.disk_usage(folder).free > SPACE:
                _precompile(folder, ninja_file)


def _precompile(folder, ninja_file):
    unfinished, log = folder / "unfinished", LOGS / "precompile.log"
    command = [*_compiler(ninja_file), "-x", "c++-header", folder / HEADERS, "-o", unfinished]
    done = run(command, timeout=TIMEOUT, log=log)
    if done.status == 0:
        unfinished.rename(folder / PRECOMPILED)
        _record(folder).note_made(folder.name, _files(folder))
    else:
        unfinished.unlink(missing_ok=True)
        print(f"    the headers could not be precompiled: see {relative(log)}.stderr", flush=True)


def _is_precompiled(folder):
    return _record(folder).is_made(folder.name, _files(folder))


def _record(folder):
    return Record(folder / ".record.json", of_tools=False)


def _files(folder):
    return [path for path in files_below(folder) if path != _record(folder).path]


def _includes(project):
    """Return the lines that include headers of others; none if a line before them matters."""
    includes = {}  # In their order.
    for path in files_below(project):
        if path.suffix in {".cpp", ".hpp"}:
            found = list(INCLUDE.finditer(path.read_text()))
            if found and OTHER_DIRECTIVE.search(found[-1].string, 0, found[-1].start()):
                return ""
            includes.update((line[0], None) for line in found)
    return "".join(f"{line}\n" for line in includes)


def _compiler(ninja_file):
    """Return the command with which ninja compiles, apart from its input and output."""
    ninja = Path(sys.executable).with_name("ninja")  # It may not be on the PATH.
    listing = [ninja, "-f", ninja_file, "-t", "compdb"]
    [step, *_] = json.loads(subprocess.run(listing, capture_output=True, check=True).stdout)
    words, kept = iter(shlex.split(step["command"])), []
    for word in words:
        if word in {"-o", "-MF"}:
            next(words)
        elif word not in {"-c", "-MMD", step["file"]} and not word.startswith("@"):
            kept.append(word)
    return kept
