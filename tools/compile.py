"""Stage "compile": build and install the extension into _build/extension."""

import os
import re
import shutil
import subprocess
import sys
import time
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path

from . import precompile, releases
from .digest import digest, files_below, is_made, note_made
from .errors import BuildError
from .paths import BUILD, EXTENSION, INSTALLED_EXTENSION, LOGS, relative
from .processes import WITHOUT_CUDA, run

TIMEOUT = 600  # seconds; it takes about 30
KEY_FILE = INSTALLED_EXTENSION / ".key"
SECONDS_FILE = INSTALLED_EXTENSION / ".seconds"
# What setuptools, torch.utils.cpp_extension and compilers take from the environment.
VARIABLES = (
    "CC", "CXX", "CFLAGS", "CPPFLAGS", "CXXFLAGS", "LDFLAGS",
    "LDSHARED", "LDCXXSHARED", "CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH",
)  # fmt: skip
LEFTOVERS = ("build", "*.egg-info", "__pycache__", "*.so")


def toolchain():
    """Describe PyTorch, Python and the compiler; raise if one does not fit."""
    wanted = releases.current().version
    try:
        found = metadata.version("torch")
    except metadata.PackageNotFoundError:
        found = "none"
    if found.partition("+")[0] != wanted:
        raise BuildError(
            f"{Path(sys.prefix).name} holds torch {found}, but it is for {wanted}, says "
            f"releases.toml: remove that folder and run the command again"
        )
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        raise BuildError(
            f"no C++ compiler: the command {compiler!r} was not found. Install one "
            "(on Debian and Ubuntu: apt-get install g++), or name yours in CXX"
        )
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True)
    return f"torch {found}", f"Python {sys.version}", version.stdout


def versions():
    """Name the versions of PyTorch, Python and the compiler as readers know them."""
    torch, python, compiler = toolchain()
    line = compiler.partition("\n")[0]
    name = "Clang" if "clang" in line else "GCC"
    number = re.search(r"\d+\.\d+(\.\d+)?", re.sub(r"\(.*?\)", "", line))
    return {
        "pytorch": torch.removeprefix("torch ").partition("+")[0],
        "python": python.removeprefix("Python ").partition(" ")[0],
        "compiler": f"{name} {number[0]}" if number else line,
    }


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


def compiled_with():
    """What the extension is compiled with, apart from its sources: for digests."""
    return [*toolchain(), *map(os.environ.get, VARIABLES)]


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
    headers_key = precompile.key(source, *compiled_with())
    variables = precompile.make_use(source, headers_key)
    # As pip does, which first runs setup.py, and so imports PyTorch, for the name alone.
    command = [sys.executable, "-m", "tools.build_wheel", source, target]
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
        raise BuildError(
            f"{relative(EXTENSION)} compiles with warnings:\n" + "\n".join(warnings)
        )
    (target / SECONDS_FILE.name).write_text(f"{time.monotonic() - started:.1f}\n")
    shutil.rmtree(INSTALLED_EXTENSION, ignore_errors=True)
    target.rename(INSTALLED_EXTENSION)
    note_made(KEY_FILE, key, _installed_files())
    precompile.keep(source, headers_key)
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
