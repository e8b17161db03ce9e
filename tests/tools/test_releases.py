"""One file lists the releases of PyTorch, and all other files agree with it."""

import csv
from dataclasses import replace

import pytest

from tools import accept_outputs, newest_releases
from tools.check import releases as trying
from tools.execute import expected_outputs
from tools.execute.samples import samples
from tools.project import releases
from tools.project.paths import GALLERY, ROOT
from tools.project.releases import DEFAULT, RELEASES, Release


@pytest.mark.parametrize("release", RELEASES, ids=lambda x: x.version)
def test_what_a_release_depends_on_is_pinned(release):
    assert f"\ntorch=={release.version} " in releases.pins(release).read_text()


def test_outputs_are_those_of_releases_that_the_site_is_built_with():
    of_releases = list(GALLERY.glob("*/*/output-*.txt"))
    assert of_releases
    series = {path.stem.removeprefix("output-") for path in of_releases}
    assert series <= {x.series for x in RELEASES if x != DEFAULT}
    for path in of_releases:
        default = path.with_name("output.txt").read_text()
        assert path.read_text() != default, f"{path} is not needed"


def test_the_table_has_each_release():
    """A page that was added since does not make all releases run: the nightly test does."""
    [header, *rows] = csv.reader(trying.TABLE.read_text().splitlines())
    assert header == trying.COLUMNS
    assert [row[0] for row in rows] == [x.version for x in RELEASES]
    for row in rows:
        _, compiles, ran, passed, failed, ran_samples = row
        assert compiles == "✓" and int(passed) <= int(ran)
        assert (passed, failed) == (ran, "–") and 0 < int(ran_samples) <= len(samples())


@pytest.mark.parametrize(
    "folder, expected",
    [(".venv", DEFAULT), (".venv-2.13.0", RELEASES[2]), ("conda", DEFAULT)],
)
def test_the_release_that_an_environment_is_for(monkeypatch, folder, expected):
    monkeypatch.setattr(releases.sys, "prefix", f"/somewhere/{folder}")
    assert releases.current() == expected


def test_a_release_that_nobody_names(monkeypatch, capsys):
    with pytest.raises(trying.BuildError, match=r"TORCH=9\.9: releases\.toml names 2\."):
        trying.try_releases(["9.9"], accept=False)


# What a release shows, where it differs


@pytest.fixture
def show(tmp_path, monkeypatch):
    """Run a sample that shows a text with a release, and accept it."""
    script = tmp_path / "gallery/part/sample.py"
    script.parent.mkdir(parents=True)
    script.write_text("")
    monkeypatch.setattr(accept_outputs, "GALLERY", tmp_path / "gallery")
    monkeypatch.setattr(expected_outputs, "EXECUTED", tmp_path / "executed")
    monkeypatch.setattr(accept_outputs, "samples", lambda: [script])
    monkeypatch.setattr(accept_outputs, "relative", str)
    (tmp_path / "executed/part").mkdir(parents=True)

    def show(text, release):
        for module in (accept_outputs, expected_outputs):
            monkeypatch.setattr(module, "current", lambda release=release: release)
        (tmp_path / "executed/part/sample.output").write_text(text)
        accept_outputs.accept()
        [found] = expected_outputs.accepted(script)
        assert found.read_text() == text
        return found.relative_to(script.parent).as_posix()

    return show


def test_another_output_is_committed_by_release(show):
    other = RELEASES[1]
    assert show("new\n", DEFAULT) == "sample/output.txt"
    assert show("new\n", other) == "sample/output.txt"
    assert show("old\n", other) == f"sample/output-{other.series}.txt"
    assert show("new\n", DEFAULT) == "sample/output.txt"
    assert show("new\n", other) == "sample/output.txt", "it is not needed any more"


# The newest patches


def test_the_newest_patch_of_a_series():
    versions = ["2.15.0", "2.14.10", "2.14.9", "2.14.0rc1", "2.1.14", "2.13.0"]
    assert newest_releases.newest("2.14", versions) == "2.14.10"
    assert newest_releases.newest("2.16", versions) is None


def test_another_patch_is_named(tmp_path, monkeypatch):
    (tmp_path / "requirements/torch").mkdir(parents=True)
    file = tmp_path / "releases.toml"
    file.write_text(releases.RELEASES_FILE.read_text())
    monkeypatch.setattr(newest_releases, "RELEASES_FILE", file)
    monkeypatch.setattr(releases, "ROOT", tmp_path)
    before = RELEASES[1]
    pins = (ROOT / "requirements/torch" / f"{before.version}.txt").read_text()
    (tmp_path / "requirements/torch" / f"{before.version}.txt").write_text(pins)
    newest_releases.rename(before, "2.14.9")
    assert 'version = "2.14.9"' in file.read_text()
    assert f'"{before.version}"' not in file.read_text()
    kept = releases.pins(replace(before, version="2.14.9")).read_text()
    assert "setuptools==" in kept and "torch==" not in kept and "nvidia" not in kept
    assert "--hash" not in kept, "pip would want those of all packages"
    newest_releases.add_nightly("2.16.0.dev20261122")
    first = file.read_text().split("[[release]]")[1]
    assert 'version = "2.16.0.dev20261122"' in first
    assert Release("2.16.0.dev20261122", 0, 0).series == "2.16"


# The comparison with the committed table


@pytest.fixture
def results(monkeypatch, tmp_path):
    """Results for each version in place of real trials, and a table of its own."""
    found = {}
    monkeypatch.setattr(trying, "TABLE", tmp_path / "releases.csv")
    monkeypatch.setattr(trying, "relative", str)
    monkeypatch.setattr(trying.Trial, "set_up", lambda self: None)
    monkeypatch.setattr(trying.Trial, "row", lambda self: found[self.release.version])
    for release in RELEASES:
        found[release.version] = [release.version, "✓", "9", "9", "–", "–"]
    return found


def test_results_are_compared_until_they_are_accepted(results):
    trying.try_releases([], accept=True)
    assert list(trying.committed()) == [x.series for x in RELEASES]
    trying.try_releases([], accept=False)
    oldest = RELEASES[-1].version
    trying.try_releases([oldest], accept=False)
    results[oldest][3:5] = ["8", "`test_work`"]
    with pytest.raises(trying.BuildError, match="the results differ from the committed ones"):
        trying.try_releases([oldest], accept=False)
    trying.try_releases([oldest], accept=True)
    trying.try_releases([oldest], accept=False)
    assert len(trying.committed()) == len(RELEASES), "the other rows stay"


def test_another_patch_and_a_newer_series_are_compared(results, monkeypatch):
    trying.try_releases([], accept=True)
    for version in ("2.14.99", "2.99.0"):
        row = [version, *results[DEFAULT.version][1:]]
        monkeypatch.setattr(trying, "RELEASES", [Release(version, 0, 0)])
        results[version] = row
        trying.try_releases([version], accept=False)
        results[version] = [version, "✓", "9", "8", "`test_work`", "–"]
        with pytest.raises(trying.BuildError, match="make accept-releases"):
            trying.try_releases([version], accept=False)
