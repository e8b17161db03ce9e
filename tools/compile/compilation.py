"""Stage "compile": build and install the C++ extensions into _build/extension."""

import os
import re
import shutil
import sys

from ..processes.run import WITHOUT_CUDA, run
from ..project.errors import BuildError
from ..project.paths import BUILD, INSTALLED_EXTENSIONS, LOGS, relative
from .extensions import LEFTOVERS, Extension

TIMEOUT = 600  # seconds; it takes about 60


def compile_extension(extension: Extension) -> bool:
    """Compile an extension if anything has changed; return whether it did.

    Raises BuildError with the compiler's errors or warnings.
    """
    key = extension.key()
    if extension.run.record.is_made(key, extension.installed_files()):
        return False
    with extension.run.recorded(key, extension.installed_files):
        _compile(extension)
    return True


def _compile(extension: Extension) -> None:
    name = relative(extension.folder)
    # Built from a copy: the build leaves nothing beside the sources.
    work = BUILD / "compile" / extension.name
    shutil.rmtree(work, ignore_errors=True)
    source, target = work / extension.name, work / "installed"
    shutil.copytree(extension.folder, source, ignore=shutil.ignore_patterns(*LEFTOVERS))
    for folder in extension.included:
        shutil.copytree(folder, work / folder.name, ignore=shutil.ignore_patterns(*LEFTOVERS))
    command = [sys.executable, "-m", "tools.compile.wheel", source, target]
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    log = LOGS / f"compile-{extension.name}.log"
    # There, setup.py finds c10d_frame, which pip installs for others.
    environment = {"PATH": path, "PYTHONPATH": str(work), **WITHOUT_CUDA}
    done = run(command, timeout=TIMEOUT, log=log, env=environment)

    text = done.text.replace(str(source), name)
    text = re.sub(r"^src/", f"{name}/src/", text, flags=re.M)  # without ninja
    for folder in extension.included:
        text = text.replace(str(work / folder.name), relative(folder))
    if done.timed_out:
        raise BuildError(f"{name}: still compiling after {TIMEOUT} s")
    if done.status != 0:
        raise BuildError(
            f"{name} does not compile:\n"
            f"{_interesting_lines(text)}\nThe whole output: {relative(log)}"
        )
    warnings = [line.strip() for line in text.splitlines() if ": warning: " in line]
    if warnings:
        raise BuildError(f"{name} compiles with warnings:\n" + "\n".join(warnings))
    INSTALLED_EXTENSIONS.mkdir(parents=True, exist_ok=True)
    extension.run.record.forget()
    for folder in extension.installed():
        shutil.rmtree(folder)
    for folder in target.iterdir():
        folder.rename(INSTALLED_EXTENSIONS / folder.name)
    shutil.rmtree(work)


def _interesting_lines(text: str) -> str:
    """Return the compiler's errors, or else the end of the output."""
    lines = [line.strip() for line in text.splitlines()]
    errors = [
        line
        for line in lines
        if re.search(
            r"\S+:\d+(:\d+)?: (fatal )?error: |^ninja: error: |No space left on device", line
        )
    ]
    return "\n".join(errors[:10] or lines[-15:])
