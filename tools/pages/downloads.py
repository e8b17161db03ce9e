"""What the zip file of each sample holds."""

import re

from ..compile.stage import extension_sources
from ..execute.samples import gallery_programs, names_extension, samples, used_files
from ..project.paths import GALLERY, ROOT
from ..project.releases import current, pins


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
