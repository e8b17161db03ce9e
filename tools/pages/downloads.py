"""List what the zip file of each sample contains."""

import re

from ..execute.samples import extensions_in, may_use, page_of, samples
from ..project.paths import ROOT, SUITE
from ..project.releases import current, pins


def downloads():
    """Return what each zip file contains, as sphinxext/code/sample_downloads needs it."""
    return {page_of(script): _download(script) for script in samples()}


def _download(script):
    files = [script, *may_use(script)]
    packages = ["torch", "numpy"]
    if script.parent / "launcher.py" in files:
        packages.append("psutil")
    if SUITE / "pyproject.toml" in files:
        packages.append("pytest")
    for extension in extensions_in(files):
        files += extension.sources()
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
