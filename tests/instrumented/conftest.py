"""Copies of the project whose extension is compiled with other flags."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.project.paths import ROOT

NOT_COPIED = ("_build", ".git", ".venv*", "__pycache__", ".pytest_cache")
# Flags count last, so those of setup.py and of samples that compile stay, too. The
# compiler itself needs nothing of what is preloaded into the programs.
COMPILER = """\
#!/bin/sh
unset LD_PRELOAD
exec {compiler} "$@" {flags}
"""


class InstrumentedCopy:
    def __init__(self, root, flags, **environment):
        self.root = root
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*NOT_COPIED))
        (root / ".venv").symlink_to((ROOT / ".venv").resolve())
        compiler = root / "instrumenting-c++"
        name = os.environ.get("CXX", "c++")
        compiler.write_text(COMPILER.format(compiler=name, flags=" ".join(flags)))
        compiler.chmod(0o755)
        shutil.copy(Path(__file__).with_name("sitecustomize.py"), root)
        self._environment = {"CXX": str(compiler), "PYTHONPATH": "", **environment}

    def python(self, *arguments, timeout, **environment):
        """Run Python at the root of the copy, with success. Return its output."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env={**os.environ, **self._environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, f"{' '.join(arguments)}:\n{done.stdout}"
        return done.stdout


@pytest.fixture(scope="module")
def instrumented_copy(tmp_path_factory):
    """Make a copy, given the compiler's flags and the variables of programs that run in it."""

    def make(flags, **environment):
        folder = tmp_path_factory.mktemp("instrumented")
        return InstrumentedCopy(folder / "copy", flags, **environment)

    return make
