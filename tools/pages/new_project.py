"""The files of projects with a backend of the reader's own.

starter/ is the project for a transport of CPU tensors with the name acme, and begins as ``store``
does. A template makes README.md in each language. The frame and the suite are wheels, which pip
installs and upgrades. starter_messages/ has what is different for a library that has messages and
no collectives. starter_accelerator/ has what is different for an accelerator, whose project begins
as ``simccl`` does and has copies of what an author replaces: the device and the library.
``make new-backend`` renames a project, and readers can download it.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from sphinxext.code.project_downloads import Project

from ..compile.extensions import sources_below
from ..project.paths import DOCS, ROOT
from ..project.published import PUBLISHED
from . import packages

STARTER = ROOT / "starter"
STARTER_MESSAGES = ROOT / "starter_messages"
STARTER_ACCELERATOR = ROOT / "starter_accelerator"
REPLACED = {
    "sim": ROOT / "extension" / "stream_collectives" / "src" / "sim",
    "simulated_accelerator": ROOT / "extension" / "simulated_accelerator",
}
VALUES = {"packages": packages.ADDRESS}  # of the variables in templates
SITE = "https://SITE/"  # Each language has another address.
NAMES = re.compile(f"acme-collectives|acme|Acme|{SITE}")


@dataclass(frozen=True)
class Kind:
    """A project to begin with, with the name acme."""

    download: str  # the name of the zip file
    readme: str  # the template
    folders: tuple[Path, ...]  # the later ones replace files of the earlier ones
    copied: dict[str, Path]  # folders that are the same in each project, by path

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
        files = {"LICENSE": f"{origin}\n\n{licence}".encode()}
        for path, folder in self.copied.items():
            files |= {f"{path}/{x}": text.encode() for x, text in texts_below(folder).items()}
        return files | packages.wheels(*packages.RELEASED)


KINDS = {  # by what an author has
    "transport": Kind("acme-collectives", "project-readme.html", (STARTER,), {}),
    "messages": Kind("acme-messages", "messages-readme.html", (STARTER, STARTER_MESSAGES), {}),
    "accelerator": Kind(
        "acme-accelerator",
        "accelerator-readme.html",
        (STARTER, STARTER_ACCELERATOR),
        REPLACED,
    ),
}


def distribution(name: str) -> str:
    """Return the name under which pip knows the backend."""
    return f"{name.replace('_', '-')}-collectives"


def project_files(name: str, of: str = "transport") -> dict[str, bytes]:
    """Return the contents of each file of the project that has the name, by path."""
    kind = KINDS[of]
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
        kind.download: Project(
            kind.sources(), {"README.md": kind.readme}, kind.copies(), SITE, VALUES
        )
        for kind in KINDS.values()
    }


def english(template: str) -> str:
    """Return the text that a template of Sphinx makes in English."""
    environment = Environment(
        loader=FileSystemLoader(DOCS / "_templates"), extensions=["jinja2.ext.i18n"]
    )
    environment.install_null_translations()  # type: ignore[attr-defined]  # of the extension
    return environment.get_template(template).render(VALUES).strip() + "\n"


def texts_below(folder: Path) -> dict[str, str]:
    """Return the text of each source of a Python project, by path."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sources_below(folder)}
