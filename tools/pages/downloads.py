"""List what the zip file of each sample contains."""

import re
from typing import Any

from ..execute.samples import extensions_of, files_of, name_for_sample, page_of, samples
from ..project.paths import GALLERY, ROOT, SUITE, relative
from ..project.releases import current, pins


def downloads() -> dict[str, dict[str, Any]]:
    """Return what each zip file contains, as sphinxext/code/sample_downloads needs it."""
    return {page_of(script): _download(script) for script in samples()}


def _download(script):
    files = files_of(script)
    packages = ["torch", "numpy"]
    if GALLERY / "launcher.py" in files:
        packages.append("psutil")
    if SUITE / "pyproject.toml" in files:
        packages.append("pytest")
    for extension in extensions_of(script):
        files += extension.sources()
    if any(file.suffix == ".cpp" for file in files):
        packages += ["setuptools", "ninja"]
    return {
        "script": relative(script),
        "files": {relative(name_for_sample(file, script)): str(file) for file in files},
        "texts": {
            "LICENSE": (ROOT / "LICENSE").read_text(),
            "requirements.txt": _requirements(packages),
        },
    }


def _requirements(packages):
    files = [ROOT / "requirements" / f"{name}.txt" for name in ("execute", "render")]
    pinned = "".join(path.read_text() for path in [*files, pins(current())])
    lines = [re.search(rf"^{name}==\S+$", pinned, re.M)[0] for name in packages]
    return "\n".join(lines) + "\n"
