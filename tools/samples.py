"""Which scripts of gallery/ are samples, and what each of them takes to run."""

import re
from functools import cache

from .compile import extension_sources
from .digest import files_below
from .paths import EXTENSION, GALLERY, ROOT
from .releases import current, pins

HELPERS = {"launcher.py", "result_table.py"}
CODE = {".py", ".cpp"}
NAMED = re.compile(r"\b(\w+)\.(?:py|cpp)\b|^\s*(?:from|import) (\w+)", re.M)


def samples():
    """The gallery scripts, in alphabetical order."""
    return sorted(path for path in GALLERY.glob("*.py") if path.name not in HELPERS)


def used_files(script, programs=None):
    """The files of gallery/ that a script names, and those that they name.

    ``programs`` are all that there are, if they are known already.
    """
    candidates = set(programs or gallery_programs()) - {script}
    used, to_read = set(), [script]
    while to_read:
        names = _named_in(to_read.pop().read_text())
        named = {path for path in candidates - used if path.stem in names}
        used |= named
        to_read += named
    return sorted(used)


def gallery_programs():
    return [path for path in files_below(GALLERY) if path.suffix in CODE]


@cache  # Many samples use the same files.
def _named_in(code):
    """The programs and modules that are named in code, without .py or .cpp."""
    return {program or module for program, module in NAMED.findall(code)}


def uses_extension(script):
    return names_extension([script, *used_files(script)])


def names_extension(files):
    return any(EXTENSION.name in file.read_text() for file in files)


def downloads():
    """What each zip file holds, in the form that sphinxext/sample_downloads wants."""
    programs, extension = gallery_programs(), extension_sources()
    return {
        f"auto_gallery/{script.stem}": _download(script, programs, extension)
        for script in samples()
    }


def _download(script, programs, extension):
    files = [script, *used_files(script, programs)]
    packages = ["torch", "numpy"]
    if GALLERY / "launcher.py" in files:
        packages.append("psutil")
    if names_extension(files):
        files += extension
    if any(file.suffix == ".cpp" for file in files):
        packages += ["setuptools", "ninja"]
    return {
        "script": _name(script),
        "files": {_name(file): str(file) for file in files},
        "texts": {
            "LICENSE": (ROOT / "LICENSE").read_text(),
            "requirements.txt": _requirements(packages),
        },
    }


def _name(path):
    return path.relative_to(ROOT).as_posix()


def _requirements(packages):
    files = [ROOT / "requirements" / f"{name}.txt" for name in ("execute", "render")]
    pinned = "".join(path.read_text() for path in [*files, pins(current())])
    lines = [re.search(rf"^{name}==\S+$", pinned, re.M)[0] for name in packages]
    return "\n".join(lines) + "\n"
