"""The files of a project with a backend of the reader's own, which begins as ``store`` does.

starter/ is this project with the name acme. A template makes README.md in each language. The frame
and the transport that acme overrides are copied, and the suite is a wheel. ``make new-backend``
renames the project, and readers can download it.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

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


def project_files(name: str) -> dict[str, bytes]:
    """Return the contents of each file of the project that has the name, by path."""
    names = {
        "acme-collectives": distribution(name),
        "acme": name,
        "Acme": "".join(word.capitalize() for word in name.split("_")),
        SITE: f"{PUBLISHED.url}en/",
    }

    def rename(text: str) -> str:
        return NAMES.sub(lambda match: names[match[0]], text)

    texts = texts_below(STARTER) | {path: english(x) for path, x in TEMPLATES.items()}
    return {rename(path): rename(text).encode() for path, text in texts.items()} | copies()


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


def copies() -> dict[str, bytes]:
    """Return the contents of the files that are the same in each project, by path."""
    licence = (ROOT / "LICENSE").read_text()
    origin = (
        f"This project was begun with files of {PUBLISHED.repository},\nwhich has this licence:"
    )
    return {
        **{f"frame/{path}": text.encode() for path, text in texts_below(FRAME).items()},
        "store/store_transport.hpp": TRANSPORT.read_bytes(),
        "LICENSE": f"{origin}\n\n{licence}".encode(),
        **wheel_of_the_suite(),
    }


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
