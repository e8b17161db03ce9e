"""The files of projects with a backend of the reader's own, for the CPU or for an accelerator.

starter/ is the project for the CPU with the name acme, and begins as ``store`` does. A template
makes README.md in each language. The frame and the transport that acme overrides are copied, and
the suite is a wheel. starter_accelerator/ has what is different for an accelerator, whose project
begins as ``simccl`` does. ``make new-backend`` renames a project, and readers can download it.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from jinja2 import Environment, FileSystemLoader

from sphinxext.code.project_downloads import Project

from ..compile.extensions import sources_below
from ..project.paths import DOCS, FRAME, ROOT, SUITE
from ..project.published import PUBLISHED

STARTER = ROOT / "starter"
STARTER_ACCELERATOR = ROOT / "starter_accelerator"
TRANSPORT = ROOT / "extension" / "store_collectives" / "src" / "store_transport.hpp"
ON_STREAMS = ROOT / "extension" / "stream_collectives" / "src"
ACCELERATOR = ROOT / "extension" / "simulated_accelerator"
SITE = "https://SITE/"  # Each language has another address.
NAMES = re.compile(f"acme-collectives|acme|Acme|{SITE}")


@dataclass(frozen=True)
class Kind:
    """A project for one type of device, with the name acme."""

    download: str  # the name of the zip file
    readme: str  # the template
    folders: tuple[Path, ...]  # the later ones replace files of the earlier ones
    copied: dict[str, Path]  # what is the same in each project: files or folders, by path

    def sources(self) -> dict[str, str]:
        """Return the texts that name the backend, by path. The C++ is that of the last folder."""
        texts: dict[str, str] = {}
        for folder in self.folders:
            texts = {path: x for path, x in texts.items() if not path.startswith("src/")}
            texts |= texts_below(folder)
        return texts

    def copies(self) -> dict[str, bytes]:
        """Return the contents of the files that are the same in each project, by path."""
        licence = (ROOT / "LICENSE").read_text()
        origin = (
            f"This project was begun with files of {PUBLISHED.repository},\nwhich has this licence:"
        )
        files = {"LICENSE": f"{origin}\n\n{licence}".encode(), **wheel_of_the_suite()}
        for path, source in self.copied.items():
            if source.is_file():
                files[path] = source.read_bytes()
            else:
                files |= {f"{path}/{x}": y.encode() for x, y in texts_below(source).items()}
        return files


KINDS = {
    "cpu": Kind(
        "acme-collectives",
        "project-readme.html",
        (STARTER,),
        {"frame": FRAME, "store/store_transport.hpp": TRANSPORT},
    ),
    # PyTorch's name for the devices that it does not know.
    "privateuse1": Kind(
        "acme-accelerator",
        "accelerator-readme.html",
        (STARTER, STARTER_ACCELERATOR),
        {
            "frame": FRAME,
            "streams": ON_STREAMS / "streams",
            "sim": ON_STREAMS / "sim",
            "simulated_accelerator": ACCELERATOR,
        },
    ),
}


def distribution(name: str) -> str:
    """Return the name under which pip knows the backend."""
    return f"{name.replace('_', '-')}-collectives"


def project_files(name: str, device: str = "cpu") -> dict[str, bytes]:
    """Return the contents of each file of the project that has the name, by path."""
    kind = KINDS[device]
    names = {
        "acme-collectives": distribution(name),
        "acme": name,
        "Acme": "".join(word.capitalize() for word in name.split("_")),
        SITE: f"{PUBLISHED.url}en/",
    }

    def rename(text: str) -> str:
        return NAMES.sub(lambda match: names[match[0]], text)

    texts = kind.sources() | {"README.md": english(kind.readme)}
    return {rename(path): rename(text).encode() for path, text in texts.items()} | kind.copies()


def projects_for_download() -> dict[str, Project]:
    """Return the projects that readers download, by the names of their zip files."""
    return {
        kind.download: Project(kind.sources(), {"README.md": kind.readme}, kind.copies(), SITE)
        for kind in KINDS.values()
    }


def english(template: str) -> str:
    """Return the text that a template of Sphinx makes in English."""
    environment = Environment(
        loader=FileSystemLoader(DOCS / "_templates"), extensions=["jinja2.ext.i18n"]
    )
    environment.install_null_translations()  # type: ignore[attr-defined]  # of the extension
    return environment.get_template(template).render().strip() + "\n"


@cache
def wheel_of_the_suite() -> dict[str, bytes]:
    """Return the wheel of conformance/, which pip installs from the project, by its path."""
    with TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "flit_core.wheel", SUITE, "--outdir", folder],
            # Otherwise the wheel would contain the times at which its files were written.
            env={**os.environ, "SOURCE_DATE_EPOCH": "0"},
            check=True,
            capture_output=True,
        )
        [wheel] = Path(folder).iterdir()
        return {f"wheels/{wheel.name}": wheel.read_bytes()}


def texts_below(folder: Path) -> dict[str, str]:
    """Return the text of each source of a Python project, by path."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sources_below(folder)}
