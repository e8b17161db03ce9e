"""Sphinx projects of a few lines, built in a process of their own."""

import os
import subprocess
import sys

import pytest

from tests.folders import Folder
from tools.project.paths import ROOT

# What the projects have in common; each adds its own.
CONFIGURATION = """
exclude_patterns = ["_*", "out"]
gettext_compact = False
html_baseurl = "https://example.org/"
html_theme = "basic"
language_switcher_languages = [
    {"sphinx": "en", "url": "en", "html": "en", "name": "English"},
    {"sphinx": "ko", "url": "ko", "html": "ko", "name": "한국어"},
]
locale_dirs = ["locales"]
templates_path = ["templates"]
"""


class Documents(Folder):
    """A folder of sources, built in English or with a catalog of translations."""

    def configure(self, own):
        self.write("conf.py", CONFIGURATION + own)

    def build(self, builder="html", language="en", fresh=True):
        """Return the exit status and all output of sphinx-build."""
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
        command += ["-E"] if fresh else []
        command += ["-b", builder, "-D", f"language={language}", ".", "out"]
        done = subprocess.run(
            command,
            cwd=self.root,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        return done.returncode, done.stdout

    def page(self, name="index", **options):
        status, output = self.build(**options)
        assert status == 0, output
        return (self.root / "out" / f"{name}.html").read_text()


@pytest.fixture
def documents(tmp_path):
    return Documents(tmp_path)


@pytest.fixture(scope="module")
def make_documents(tmp_path_factory):
    """Return a function that makes documents for all tests of a file."""
    return lambda: Documents(tmp_path_factory.mktemp("documents"))
