"""A sample uses the files that it names and the modules that it imports, and no others."""

import pytest

from tools.execute import samples
from tools.pages.downloads import downloads


@pytest.fixture
def gallery(tmp_path, monkeypatch):
    """A folder of the gallery with two programs, a helper of all folders, and another sample."""
    folder = tmp_path / "gallery/part"
    (folder / "workers").mkdir(parents=True)
    for name in ("../launcher", "workers/rpc", "workers/other", "other"):
        (folder / f"{name}.py").write_text("import psutil\n")
    (folder / "launcher.py").symlink_to("../launcher.py")
    monkeypatch.setattr(samples, "GALLERY", folder.parent)
    return folder


def used_by(gallery, text):
    script = gallery / "sample.py"
    script.write_text(text)
    return [x.relative_to(gallery).as_posix() for x in samples.may_use(script)]


def test_what_is_named_or_imported_is_used(gallery):
    text = 'from launcher import launch\nlaunch("workers/rpc.py", ranks=2)\n'
    assert used_by(gallery, text) == ["launcher.py", "workers/rpc.py"]


def test_a_word_of_the_text_is_no_file(gallery):
    assert used_by(gallery, "# An rpc, and other things of the launcher.\n") == []


def test_what_a_worker_names_is_used_too(gallery):
    (gallery / "workers/rpc.py").write_text("# As in workers/other.py.\n")
    used = used_by(gallery, 'run("workers/rpc.py")')
    assert used == ["workers/other.py", "workers/rpc.py"]


def test_helpers_are_no_samples(gallery):
    (gallery / "sample.py").write_text("")
    assert samples.samples() == [gallery / "other.py", gallery / "sample.py"]
    (gallery / "launcher.py").unlink()
    (gallery / "launcher.py").write_text("# A copy in the place of the link.\n")
    assert samples.samples() == [gallery / "other.py", gallery / "sample.py"]


def test_a_page_has_the_folder_and_the_name_of_its_sample(gallery):
    assert samples.page_of(gallery / "my_sample.py") == "part/my-sample"


def test_each_sample_takes_the_packages_that_it_needs():
    found = downloads()
    plain = found["operations/choosing-a-library"]
    assert list(plain["files"]) == ["gallery/operations/choosing_a_library.py"]
    requirements = plain["texts"]["requirements.txt"].split()
    assert [line.partition("==")[0] for line in requirements] == ["torch", "numpy"]
    compiled = found["tutorial/step-4-one-rank"]
    assert "extension/dummy_collectives/src/dummy.cpp" in compiled["files"]
    assert "ninja==" in compiled["texts"]["requirements.txt"]
    launched = found["operations/collectives"]
    assert "gallery/operations/launcher.py" in launched["files"]
    assert "psutil==" in launched["texts"]["requirements.txt"]
