"""List what the zip file of each sample contains."""

import re
from collections.abc import Iterable
from pathlib import Path

from sphinxext.code.sample_downloads import ZipFile

from ..execute.samples import extensions_of, files_of, name_for_sample, page_of, samples
from ..project.paths import GALLERY, ROOT, SUITE, relative
from ..project.releases import current, pins


def downloads() -> dict[str, ZipFile]:
    """Return what the zip file of each sample contains, by the page of the sample."""
    return {page_of(script): _zip_file(script) for script in samples()}


def _zip_file(script: Path) -> ZipFile:
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
    return ZipFile(
        relative(script),
        {relative(name_for_sample(file, script)): str(file) for file in files},
        {
            "LICENSE": (ROOT / "LICENSE").read_text(),
            "requirements.txt": _requirements(packages),
        },
    )


def _requirements(packages: Iterable[str]) -> str:
    files = [ROOT / "requirements" / f"{name}.txt" for name in ("execute", "render")]
    pinned = "".join(path.read_text() for path in [*files, pins(current())])
    versions = dict(re.findall(r"^([\w-]+)==(\S+)$", pinned, re.M))
    return "".join(f"{name}=={versions[name]}\n" for name in packages)
