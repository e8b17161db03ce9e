"""Find the samples in gallery/, the page of each, and the files that it may use.

A folder of gallery/ is a part of the site, and its scripts are samples. The folder of a
sample's name beside it has the programs that only this sample starts, its accepted output and
its drawings. A sample may also use what it names of the folder shared/ of its part, and the
modules in gallery/ itself. One that names c10d_conformance needs the whole project of that
package.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from sphinxext.text.gallery_scripts import split

from ..compile.extensions import EXTENSIONS, Extension, sources_below
from ..project.errors import BuildError
from ..project.paths import EXECUTED, FRAME_PACKAGE, GALLERY, SUITE, relative
from ..state.digests import files_below

USABLE = {".py", ".cpp", ".hpp", ".csv"}
SHARED = "shared"
SUITE_PACKAGE = "c10d_conformance"
# Not what an installation by hand leaves beside them.
SUITE_FILES = {SUITE_PACKAGE, "README.md", "pyproject.toml"}


def samples() -> list[Path]:
    """Return the paths of all samples, in alphabetical order."""
    return sorted(GALLERY.glob("*/*.py"))


def page_of(script: Path) -> str:
    """Return the name of the page that is made from a sample, such as "overview/rpc"."""
    return f"{script.parent.name}/{script.stem.replace('_', '-')}"


def source_of(script: Path) -> Path:
    """Return the path of the page that the stage "execute" writes from a sample."""
    return EXECUTED / f"{page_of(script)}.rst"


def folder_of(script: Path) -> Path:
    """Return the folder of what belongs to a sample."""
    return script.with_suffix("")


def blocks_of(script: Path) -> list[tuple[str, str]]:
    """Return the texts and the code of a sample. Raises BuildError if it is in another form."""
    try:
        return split(script.read_text())
    except ValueError as error:
        raise BuildError(f"{relative(script)}: {error}") from None


def files_of(script: Path) -> list[Path]:
    """Return a sample and the files that it may use, without those of the extensions."""
    own = [script, *programs_of(script)]
    code = _text(own)
    common = [*_usable(script.parent / SHARED), *sorted(GALLERY.glob("*.py"))]
    files = [*own, *(path for path in common if _names(code, path))]
    if SUITE_PACKAGE in code:
        files += [x for x in files_below(SUITE) if x.relative_to(SUITE).parts[0] in SUITE_FILES]
    return files


def programs_of(script: Path) -> list[Path]:
    """Return the files in the folder of a sample that it may use."""
    return _usable(folder_of(script))


def name_for_sample(path: Path, script: Path) -> Path:
    """Return where a file has to be in the gallery for a sample that is started by hand.

    Python looks for the modules of gallery/ beside the script; the build sets PYTHONPATH.
    """
    return script.parent / path.name if path.parent == GALLERY else path


def extensions_of(script: Path) -> list[Extension]:
    """Return the extensions that a sample or a program of it imports, or compiles itself.

    Those whose headers one of them includes are among them: it needs them to run, too.
    """
    code = _text(files_of(script))
    named = [x for x in EXTENSIONS if re.search(rf'(import|from) {x.name}\b|["/]{x.name}"', code)]
    included = {folder for x in named for folder in x.included}
    return [x for x in EXTENSIONS if x in named or x.folder in included]


def frame_of(script: Path) -> list[Path]:
    """Return the files of the frame's package, if a sample imports it."""
    imports = re.search(r"^(import|from) c10d_frame\b", _text(files_of(script)), re.M)
    return sources_below(FRAME_PACKAGE) if imports else []


def _usable(folder: Path) -> list[Path]:
    return [path for path in files_below(folder) if path.suffix in USABLE]


def _names(code: str, path: Path) -> bool:
    """Return whether code imports a module, or names a file of shared/."""
    return bool(re.search(rf"\b(import |from |{SHARED}[./]){path.stem}\b", code))


def _text(paths: Iterable[Path]) -> str:
    return "\n".join(path.read_text() for path in paths)
