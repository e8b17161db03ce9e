"""The commands that pages and guides tell readers to type, run in a copy of this clone.

The build itself runs those that take seconds, and `make test-builds` runs the others. A run is
recorded with a digest of the command and of the files that it needs. After an edit of one of
these, the command counts as not run. Texts and translations are not among them.
"""

import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..processes.progress import progress
from ..processes.run import run
from ..project.errors import BuildError, readable
from ..project.paths import BUILD, DOCS, LOGS, ROOT, relative
from ..state.digests import files_of
from ..state.records import record
from ..state.runs import Run

TIMEOUT = 300  # seconds; it takes about 10
# Besides tools/ and sphinxext/, on which every record depends.
NEEDED = ["Makefile", "conf.py", "languages.toml", "releases.toml", "site.toml", "requirements"]
# What new projects consist of.
NEEDED += ["starter", "starter_accelerator", "starter_messages", "conformance"]
NEEDED += ["docs/_templates/project-readme.html", "docs/_templates/messages-readme.html"]
NEEDED += ["docs/_templates/accelerator-readme.html", "docs/_templates/readme-start.html"]
NEEDED += ["docs/_templates/readme-older-releases.html", "docs/_templates/readme-upkeep.html"]
NEEDED += ["extension/frame"]
NEEDED += ["extension/stream_collectives/src"]
NEEDED += ["extension/simulated_accelerator"]
NOT_COPIED = shutil.ignore_patterns(".git", ".venv*", "_build", "__pycache__", "*.mo", "tests")
# The caller may itself be make; the environment is installed already.
ENVIRONMENT = {"MAKEFLAGS": "", "MAKELEVEL": "", "MFLAGS": "", "PYTHON": "true"}


@dataclass(frozen=True)
class Command:
    """What a reader types, and a text that a file then contains."""

    typed: str
    file: str
    text: str
    is_quick: bool = False

    @property
    def as_run(self) -> Run:
        """The last run of the command."""
        files = [x for name in NEEDED for x in files_of(ROOT / name)]
        return Run("command", record(re.sub(r"\W+", "-", self.typed)), tuple(files))

    def run(self) -> None:
        """Run the command in a copy of this clone. Raises BuildError if it fails."""
        log = LOGS / f"{self.as_run.record.path.stem}.log"
        with self.as_run.recorded(), tempfile.TemporaryDirectory() as folder:
            clone = copy_clone(Path(folder, "clone"))
            command: list[str | Path] = ["sh", "-ec", f'cd "$0"; {self.typed}', clone]
            done = run(command, timeout=TIMEOUT, log=log, env=ENVIRONMENT)
            if done.status != 0 or not self.has_worked(clone):
                [page, *_] = self.pages()
                raise BuildError(
                    f"{relative(page)}: `{self.typed}` fails when it is typed:\n"
                    f"{readable(done.text)}\nThe whole output: {relative(log)}"
                )

    def has_worked(self, clone: Path) -> bool:
        path = clone / self.file
        return path.is_file() and self.text in path.read_text()

    def pages(self) -> list[Path]:
        """Return the sources of the pages and guides that tell readers to type the command."""
        line = re.compile(rf"^ *{re.escape(self.typed)}(?: +#.*)?$", re.M)
        files = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
        return [path for path in files if line.search(path.read_text())]


COMMANDS = [
    Command("make html", "_build/html/ko/index.html", 'lang="ko"'),
    Command("make preview LANGUAGE=ko", "_build/preview/html/ko/index.html", 'lang="ko"'),
    Command(
        "make i18n-update i18n-check",
        "locales/ko/LC_MESSAGES/index.po",
        '\nmsgid ""\n',
        is_quick=True,
    ),
    Command(
        "make i18n-add LANGUAGE=ja",
        "locales/ja/LC_MESSAGES/index.po",
        'msgstr ""\n\n',
        is_quick=True,
    ),
    Command(
        "make new-backend NAME=acme",
        "../acme-collectives/src/acme_transport.hpp",
        "class AcmeTransport final",
        is_quick=True,
    ),
    Command(
        "make new-backend NAME=acme KIND=messages",
        "../acme-collectives/src/acme_messages.hpp",
        "class AcmeMessages final",
        is_quick=True,
    ),
    Command(
        "make new-backend NAME=acme KIND=accelerator",
        "../acme-collectives/src/registration.cpp",
        "struct OptionsAcme final : streams::",
        is_quick=True,
    ),
]
# What TRANSLATING.md gives to Weblate: the language and the component of a catalog.
CATALOGS = r"locales/(?P<language>[^/]*)/LC_MESSAGES/(?P<component>.*)\.po"


def copy_clone(target: Path) -> Path:
    """Copy this clone, with the environment and the results of execution; return the copy."""
    shutil.copytree(ROOT, target, ignore=NOT_COPIED)
    for name in ("execute", "extension"):  # Nothing must be executed again.
        shutil.copytree(BUILD / name, target / "_build" / name)
    (target / ".venv").symlink_to(sys.prefix)
    return target


def run_quick_commands() -> int:
    """Run the commands that take seconds and were not run; return how many ran."""
    stale = [x for x in COMMANDS if x.is_quick and x.as_run.status is None and x.pages()]
    ended: list[None] = []
    typed = f"{len(stale)} commands of pages typed: {', '.join(x.typed for x in stale)}"
    with progress(lambda: f"{len(ended)} of {typed}"), ThreadPoolExecutor() as pool:
        ended.extend(pool.map(Command.run, stale))
    return len(stale)
