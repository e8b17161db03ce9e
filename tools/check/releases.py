"""Compile the extension, run its tests and the samples with other releases of PyTorch.

Each release has an environment of its own beside .venv, and a copy of the project in
_build/releases, where the build and the tests run.

The results are compared with docs/tutorial/releases/releases.csv, which a page shows, or replace
its rows. Another patch is compared with the row of its series, and a release that is newer
than the table with its newest row.
"""

import csv
import difflib
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from ..processes.progress import progress
from ..processes.run import WITHOUT_CUDA, Outcome, run
from ..project.errors import BuildError
from ..project.paths import BUILD, DOCS, ROOT, relative
from ..project.releases import DEFAULT, ENVIRONMENT, RELEASES, Release, series
from ..state.digests import project_files

TABLE = DOCS / "tutorial" / "releases" / "releases.csv"
COPIES = BUILD / "releases"
TIMEOUT = 1800  # seconds, for one step with one release
COLUMNS = ["PyTorch", "Compiles", "Tests", "Passed", "Failed", "Samples"]
TESTS = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/extension"]
# Besides what a page may be made from.
COPIED = ["tests/conftest.py", "tests/ranks.py", "tests/extension"]


def environment_of(release: Release) -> Path:
    """Return the folder of the environment with a release."""
    own = ROOT / f"{ENVIRONMENT}{release.version}"
    # The default has an environment already, which the build of the site uses.
    return ROOT / ".venv" if release == DEFAULT and not own.exists() else own


def install(release: Release) -> None:
    """Create the environment with a release, or complete it. Raises BuildError."""
    named = [] if environment_of(release).name == ".venv" else [release.version]
    script = ROOT / "tools" / "environment.py"
    if subprocess.run([sys.executable, script, "releases", *named]).returncode != 0:
        raise BuildError(f"the environment for PyTorch {release.version} is missing")


class Trial:
    """A release of PyTorch, and the copy of the project in which it is tried."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.root = COPIES / release.version
        self.environment = environment_of(release)

    def set_up(self) -> None:
        """Create the environment, and copy the project as it is now."""
        install(self.release)
        shutil.rmtree(self.root, ignore_errors=True)
        for path in [*project_files(), *(ROOT / name for name in COPIED)]:
            copy = self.root / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if path.is_dir() else shutil.copyfile)(path, copy)
        (self.root / self.environment.name).symlink_to(self.environment)

    def python(self, name: str, *arguments: str | Path, **variables: str) -> Outcome:
        """Run Python in the copy. Returns the outcome; the log is named ``name``."""
        python = self.root / self.environment.name / "bin" / "python"
        command = ["env", "-C", self.root, python, *arguments]
        log = COPIES / "logs" / f"{self.release.version}-{name}.log"
        with progress(lambda: f"PyTorch {self.release.version}: {name}"):
            return run(command, timeout=TIMEOUT, log=log, env=variables)

    def row(self) -> list[str]:
        """Return the row of the table: the results with this release, and the tests that fail."""
        version = self.release.version
        self._must_succeed("compile", "-m", "tools.compile")
        results = self.root / "junit.xml"
        self.python("tests", *TESTS, f"--junitxml={results}", **WITHOUT_CUDA)
        if not results.is_file():
            raise BuildError(f"PyTorch {version}: the tests of the extension did not run")
        cases = list(ElementTree.parse(results).iter("testcase"))
        failed = [x for x in cases if x.find("failure") is not None or x.find("error") is not None]
        skipped = [x for x in cases if x.find("skipped") is not None]
        self._must_succeed("samples", "-m", "tools.execute")
        samples = str(len(list((self.root / "_build" / "execute").glob("*/*.rst"))))
        ran = len(cases) - len(skipped)
        names = sorted({re.sub(r"\[.*", "", case.get("name", "")) for case in failed})
        return [version, "✓", str(ran), str(ran - len(failed)), _as_code(names), samples]

    def _must_succeed(self, name: str, *arguments: str) -> None:
        done = self.python(name, *arguments)
        if done.status != 0:
            raise BuildError(f"PyTorch {self.release.version}: {name}\n{done.text[-4000:]}")


def _as_code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "–"


def _table(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    return text.getvalue()


def committed() -> dict[str, list[str]]:
    """Return the rows of the committed table, by series."""
    rows = list(csv.reader(TABLE.read_text().splitlines())) if TABLE.is_file() else [COLUMNS]
    return {series(row[0]): row for row in rows[1:]}


def try_releases(versions: list[str], *, accept: bool) -> None:
    """Try these releases, or all; compare the results, or ``accept`` them.

    Raises BuildError if a release is unknown or cannot be tried, or if the results differ from
    the committed ones.
    """
    if unknown := set(versions) - {x.version for x in RELEASES}:
        names = ", ".join(x.version for x in RELEASES)
        raise BuildError(f"TORCH={unknown.pop()}: releases.toml names {names}")
    rows = {}
    for release in RELEASES:
        if not versions or release.version in versions:
            print(f"[PyTorch {release.version}]", flush=True)
            trial = Trial(release)
            trial.set_up()
            rows[release.version] = trial.row()
            print("    " + "  ".join(rows[release.version]), flush=True)
    before = committed()
    if accept:
        now = before | {x.series: rows[x.version] for x in RELEASES if x.version in rows}
        TABLE.write_text(_table([now[x.series] for x in RELEASES if x.series in now]))
        print(f"wrote {relative(TABLE)}")
        return
    newest = next(iter(before.values()), COLUMNS)
    expected = [[version, *before.get(series(version), newest)[1:]] for version in rows]
    difference = difflib.unified_diff(
        _table(expected).splitlines(),
        _table(list(rows.values())).splitlines(),
        relative(TABLE),
        "this run",
        lineterm="",
    )
    if lines := [f"    {line}" for line in difference]:
        raise BuildError(
            "the results differ from the committed ones:\n"
            + "\n".join(lines)
            + "\nIf the new results are right, accept them with `make accept-releases`."
        )
