"""A small project for each test: the tools, and nothing slow."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.folders import Folder
from tests.tools.small_catalogs import pages  # noqa: F401 - A fixture.
from tools.project.paths import INSTALLED_EXTENSIONS, ROOT

COPIED = ["tools", "conformance", "extension", "sphinxext", "docs/_templates", "docs/_static"]
COPIED += ["docs/_root", "docs/_styles", "docs/glossary.csv"]
COPIED += ["conf.py", "languages.toml", "releases.toml", "site.toml"]
COPIED += ["requirements", "starter_accelerator", "LICENSE"]
STREAMS = ("simulated_accelerator", "stream_collectives")
# One extension is enough: the others take a minute to compile. Bytecode saves time, too.
LEFT_OUT = shutil.ignore_patterns("build", "*.egg-info", "shm_collectives", *STREAMS)


class Project(Folder):
    """A clone in a temporary folder, with the extension compiled already."""

    def __init__(self, root):
        super().__init__(root)
        for name in COPIED:
            source, target = ROOT / name, root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=LEFT_OUT)
            else:
                shutil.copyfile(source, target)
        # A page that has moved leads to one that is not here.
        self.write("site.toml", re.sub(r'^".*\n', "", self.read("site.toml"), flags=re.M))
        for name in ("run_seconds", "unexecuted_lines"):
            self.write(f"gallery/{name}.json", "{}\n")
        self.write("gallery/tutorial/README.rst", "Samples\n=======\n")
        for name in ("launcher.py", "result_table.py"):
            shutil.copyfile(ROOT / "gallery" / name, root / "gallery" / name)
        shutil.copytree(INSTALLED_EXTENSIONS, root / "_build" / "extension", ignore=LEFT_OUT)

    def run_without_torch(self, *command):
        """Run a module with no compiler, and end if it imports what runs samples."""
        for name in ("torch", "matplotlib", "sphinx_gallery", "numpy"):
            self.write(f"forbidden/{name}.py", f"import os; print({name!r}); os._exit(9)\n")
        forbidden = str(self.root / "forbidden")
        return self.run(*command, PYTHONPATH=forbidden, PATH="/nowhere", CXX="none")

    def copy(self, root):
        """Return a copy of the present project."""
        shutil.copytree(self.root, root)
        copy = object.__new__(Project)
        copy.root = root
        return copy

    def sample(self, code, name="sample", output=None):
        """Add a gallery script that consists of a title and ``code``.

        Without ``output``, it may show anything.
        """
        title = f'"""\n{name}\n{"=" * len(name)}\n\nA text.\n"""\n\n'
        if output is None:
            code += r"# output may differ in: \A(?s:.*)\Z"
        else:
            self.write(f"gallery/tutorial/{name}/output.txt", output)
        times = json.loads(self.read("gallery/run_seconds.json"))
        times[f"tutorial/{name.replace('_', '-')}"] = {"seconds": 5}
        self.write("gallery/run_seconds.json", json.dumps(times))
        return self.write(f"gallery/tutorial/{name}.py", title + code + "\n")

    def only_english(self):
        """Let other languages take no time."""
        languages = self.read("languages.toml")
        self.write("languages.toml", languages[: languages.index('[[language]]\ngettext = "ko"')])

    def run(self, *command, timeout=600, **environment):
        """Run a module of tools; return its exit status and all its output."""
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=self.root,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )
        return done.returncode, done.stdout

    def fail(self, *command, **options):
        """Run a module of tools that must fail; return its output."""
        status, output = self.run(*command, **options)
        assert status == 1, output
        assert "error: " in output
        assert 'Traceback (most recent call last):\n  File "' + str(self.root) not in output
        return output


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "clone")


@pytest.fixture(scope="module")
def lasting_project(tmp_path_factory):
    """One project for all tests of a file; each continues where the last one ended."""
    return Project(tmp_path_factory.mktemp("project") / "clone")
