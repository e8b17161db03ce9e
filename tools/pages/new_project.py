"""The files of a project with a backend of the reader's own, which begins as ``store`` does.

starter/ is this project with the name acme. A template makes README.md in each language. The frame,
the transport that acme overrides, and the suite are copied. ``make new-backend`` renames
the project, and readers can download it.
"""

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from sphinxext.code.project_downloads import Project

from ..compile.extensions import sources_below
from ..project.paths import DOCS, FRAME, ROOT, SUITE
from ..project.published import PUBLISHED

STARTER = ROOT / "starter"
TRANSPORT = ROOT / "extension" / "store_collectives" / "src" / "store_transport.hpp"
TEMPLATES = {"README.md": "project-readme.html"}
SITE = "https://SITE/"  # Each language has another address.
NAMES = re.compile(f"acme-collectives|acme|Acme|{SITE}")


def distribution(name: str) -> str:
    """Return the name under which pip knows the backend."""
    return f"{name.replace('_', '-')}-collectives"


def project_files(name: str) -> dict[str, str]:
    """Return the text of each file of the project that has the name, by path."""
    names = {
        "acme-collectives": distribution(name),
        "acme": name,
        "Acme": "".join(word.capitalize() for word in name.split("_")),
        SITE: f"{PUBLISHED.url}en/",
    }

    def rename(text: str) -> str:
        return NAMES.sub(lambda match: names[match[0]], text)

    texts = texts_below(STARTER) | {path: english(x) for path, x in TEMPLATES.items()}
    return {rename(path): rename(text) for path, text in texts.items()} | copies()


def project_for_download() -> dict[str, Project]:
    """Return the project that readers download, by the name of its zip file."""
    return {distribution("acme"): Project(texts_below(STARTER), TEMPLATES, copies(), SITE)}


def english(template: str) -> str:
    """Return the text that a template of Sphinx makes in English."""
    environment = Environment(
        loader=FileSystemLoader(DOCS / "_templates"), extensions=["jinja2.ext.i18n"]
    )
    environment.install_null_translations()  # type: ignore[attr-defined]  # of the extension
    return environment.get_template(template).render().strip() + "\n"


def copies() -> dict[str, str]:
    """Return the files that are the same in each project."""
    licence = (ROOT / "LICENSE").read_text()
    origin = (
        f"This project was begun with files of {PUBLISHED.repository},\nwhich has this licence:"
    )
    folders = {"conformance": SUITE, "frame": FRAME}
    copied = {
        f"{name}/{path}": text
        for name, folder in folders.items()
        for path, text in texts_below(folder).items()
    }
    return copied | {
        "store/store_transport.hpp": TRANSPORT.read_text(),
        "LICENSE": f"{origin}\n\n{licence}",
    }


def texts_below(folder: Path) -> dict[str, str]:
    """Return the text of each source of a Python project, by path."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sources_below(folder)}
