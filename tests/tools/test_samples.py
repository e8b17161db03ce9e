"""What belongs to a sample: what it names as a file or imports, and no more."""

import pytest

from tools.execute import samples
from tools.pages.downloads import downloads


@pytest.fixture
def gallery(tmp_path, monkeypatch):
    folder = tmp_path / "gallery"
    (folder / "workers").mkdir(parents=True)
    for name in ("launcher", "result_table", "workers/rpc", "workers/other"):
        (folder / f"{name}.py").write_text("import psutil\n")
    monkeypatch.setattr(samples, "GALLERY", folder)
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
    assert samples.samples() == [gallery / "sample.py"]


def test_each_sample_takes_the_packages_that_it_needs():
    found = downloads()
    plain = found["auto_gallery/operations_choosing_a_library"]
    assert list(plain["files"]) == ["gallery/operations_choosing_a_library.py"]
    requirements = plain["texts"]["requirements.txt"].split()
    assert [line.partition("==")[0] for line in requirements] == ["torch", "numpy"]
    compiled = found["auto_gallery/step_4_one_rank"]
    assert "extension/dummy_collectives/src/dummy.cpp" in compiled["files"]
    assert "ninja==" in compiled["texts"]["requirements.txt"]
    launched = found["auto_gallery/operations_collectives"]
    assert "gallery/launcher.py" in launched["files"]
    assert "psutil==" in launched["texts"]["requirements.txt"]
