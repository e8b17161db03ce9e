"""The record of one wheel for all releases is of today's code, and compared with what happens."""

import importlib.machinery
import os
import re
import shutil
import subprocess
import sys

import pytest
from packaging.requirements import Requirement

from tools.check import one_wheel
from tools.pages.new_project import STARTER
from tools.project.releases import RELEASES


def module_of(release):
    return f"_for_torch_{release.series.replace('.', '_')}"


def test_the_record_has_each_release():
    text = one_wheel.RECORD.read_text()
    assert re.findall(r"^PyTorch (\S+)$", text, re.M) == [x.version for x in RELEASES]
    [required] = {x for x in re.findall("requires: (.*)", text) if "," in x}
    for release in RELEASES:
        assert f"    acme_collectives/{module_of(release)}." in text
        assert f"    imported: acme_collectives.{module_of(release)}\n" in text
        assert Requirement(required).specifier.contains(release.version)


def test_the_record_has_the_error_of_today(tmp_path):
    *others, removed = RELEASES
    shutil.copytree(STARTER / "acme_collectives", tmp_path / "acme_collectives")
    for release in others:
        name = module_of(release) + importlib.machinery.EXTENSION_SUFFIXES[0]
        (tmp_path / "acme_collectives" / name).touch()
    (tmp_path / "torch.py").write_text(f"__version__ = '{removed.version}+cpu'\n")
    command = [sys.executable, "-c", "import acme_collectives"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    error = done.stderr.strip().splitlines()[-1]
    assert error.startswith("ImportError: acme_collectives has _for_torch_")
    assert error in " ".join(one_wheel.RECORD.read_text().split())


def test_results_are_compared_until_they_are_accepted(tmp_path, monkeypatch):
    printed = ["acme-1-cp311-cp311-manylinux_2_34_x86_64.whl", "    all_reduce of 1 and 2: 3"]
    monkeypatch.setattr(one_wheel, "RECORD", tmp_path / "wheel.txt")
    monkeypatch.setattr(one_wheel, "relative", str)
    monkeypatch.setattr(one_wheel, "results", lambda: printed)
    one_wheel.try_wheel(accept=True)
    printed[0] = "acme-1-cp313-cp313-manylinux_2_39_aarch64.whl"
    one_wheel.try_wheel(accept=False)
    printed[1] = "    all_reduce of 1 and 2: 4"
    with pytest.raises(one_wheel.BuildError, match="make accept-wheel"):
        one_wheel.try_wheel(accept=False)
