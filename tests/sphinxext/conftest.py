"""Sphinx projects of a few lines, built in a process of their own."""

import os
import subprocess
import sys

import pytest

from tools.project.paths import ROOT


class Documents:
    """A folder of sources, built in English or with a catalog of translations."""

    def __init__(self, root):
        self.root = root
        self.environment = {"PYTHONPATH": str(ROOT)}

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def translate(self, page, messages):
        entries = "".join(f'msgid "{a}"\nmsgstr "{b}"\n\n' for a, b in messages.items())
        header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\n'
        self.write(f"locales/ko/LC_MESSAGES/{page}.po", header + entries)

    def build(self, builder="html", language="en", fresh=True):
        """Return the exit status and all output of sphinx-build."""
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
        command += ["-E"] if fresh else []
        command += ["-b", builder, "-D", f"language={language}", ".", "out"]
        done = subprocess.run(
            command,
            cwd=self.root,
            env=os.environ | self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        return done.returncode, done.stdout

    def page(self, name="index", **options):
        status, output = self.build(**options)
        assert status == 0, output
        return (self.root / "out" / f"{name}.html").read_text()


@pytest.fixture
def documents(tmp_path):
    return Documents(tmp_path)
