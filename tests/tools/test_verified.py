"""The footer names the versions that the samples ran with, and nothing that is unknown."""

import json

import pytest
from test_status_of_translations import git

from tools.compile import toolchain
from tools.pages import versions
from tools.project import git as history
from tools.project.languages import LANGUAGES

ENGLISH = LANGUAGES[0]
DAY = "2026-03-04"


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A folder in which the samples were executed."""
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "versions.json").write_text('{"pytorch": "2.0", "python": "3", "compiler": "C"}')
    monkeypatch.setattr("tools.project.git.ROOT", clone)
    monkeypatch.setattr(versions, "VERSIONS", clone / "versions.json")
    return clone


def commit(folder):
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "First", day=DAY)
    return git(folder, "rev-parse", "HEAD")


def test_the_versions(clone):
    values = {"pytorch": "2.0", "python": "3", "compiler": "C"}
    assert versions.template_values(ENGLISH) == {f"verified_{x}": values[x] for x in values}
    name = commit(clone)
    assert versions.facts() == values | {"commit": name, "date": DAY}


def test_a_date_in_each_language(clone):
    commit(clone)
    days = [versions.template_values(language)["verified_date"] for language in LANGUAGES]
    assert days == ["March 4, 2026", "2026년 3월 4일", "2026 年 3 月 4 日"]


@pytest.mark.parametrize("name", ["versions.json", "new"])
def test_changes_that_are_not_committed(clone, name):
    commit(clone)
    git(clone, "config", "status.showUntrackedFiles", "no")  # As some have it for all clones.
    (clone / name).write_text('{"pytorch": "3"}')
    assert versions.facts()["changed"] == "1"


def test_sources_without_a_history_of_their_own(clone):
    assert history.commit() is None
    commit(clone.parent)
    assert history.commit() is None and "commit" not in versions.facts()


@pytest.mark.parametrize(
    "output, expected",
    [
        ("c++ (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright", "GCC 12.2.0"),
        ("g++-14 (Ubuntu 14.2.0-4ubuntu2~24.04) 14.2.0", "GCC 14.2.0"),
        ("Debian clang version 15.0.6\nTarget: x86_64", "Clang 15.0.6"),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)", "Clang 18.1.3"),
        ("some compiler", "some compiler"),
    ],
)
def test_the_names_of_compilers(monkeypatch, output, expected):
    tools = ("torch 2.13.0+cpu", "Python 3.11.7 (main, Mar 4 2026)", output)
    monkeypatch.setattr(toolchain, "toolchain", lambda: tools)
    assert toolchain.versions() == {"pytorch": "2.13.0", "python": "3.11.7", "compiler": expected}


def test_a_page_shows_the_versions_of_an_execution_of_all_samples(project):
    noted = project.root / "_build/execute/versions.json"
    project.only_english()
    project.write("docs/index.md", "# Title\n\n```{toctree}\ntutorial/sample\n```\n")
    project.sample("print(1)\n")
    assert project.run("tools.execute")[0] == 0
    assert json.loads(noted.read_text()) == toolchain.versions()
    project.write(".gitignore", "_build\n__pycache__\n*.mo\n")
    name = commit(project.root)
    for end in ("", ", with uncommitted changes"):
        assert project.run("tools.render")[0] == 0
        page = project.read("_build/render/en/index.html")
        assert f"Verified with PyTorch {toolchain.versions()['pytorch']}" in page
        assert f'/commit/{name}"><code>{name[:7]}</code></a> of March 4, 2026{end}</span>' in page
        project.write("new", "")
    noted.unlink()
    assert project.run("tools.render")[0] == 0
    assert "verified-with" not in project.read("_build/render/en/index.html")
    noted.touch()
    project.sample("raise SystemExit(1)\n")
    project.fail("tools.execute")
    assert not noted.exists(), "some pages are of another execution"
