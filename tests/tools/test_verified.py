"""The footer says with what the samples were run, and nothing that is not known."""

import json
import subprocess

import pytest

from tools import compile, render, verified
from tools.languages import LANGUAGES

ENGLISH, KOREAN, CHINESE = LANGUAGES
DAY = "2026-03-04T05:06:07+00:00"


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A folder in which the samples were executed."""
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "versions.json").write_text('{"pytorch": "2.0", "python": "3", "compiler": "C"}')
    monkeypatch.setattr(verified, "ROOT", clone)
    monkeypatch.setattr(verified, "VERSIONS", clone / "versions.json")
    return clone


def git(folder, *arguments):
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    environment = {"PATH": "/usr/bin:/bin", "GIT_COMMITTER_DATE": DAY, "HOME": str(folder)}
    command = ["git", *identity, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder):
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "First")
    return git(folder, "rev-parse", "HEAD")


def test_nothing_before_the_samples_were_executed(clone):
    commit(clone)
    (clone / "versions.json").unlink()
    assert verified.template_values(ENGLISH) == {}


def test_a_commit_and_its_date_in_each_language(clone):
    expected = commit(clone)
    values = verified.template_values(ENGLISH)
    assert values == {
        "verified_pytorch": "2.0",
        "verified_python": "3",
        "verified_compiler": "C",
        "verified_commit": expected,
        "verified_date": "March 4, 2026",
    }
    assert verified.template_values(KOREAN)["verified_date"] == "2026년 3월 4일"
    assert verified.template_values(CHINESE)["verified_date"] == "2026年3月4日"


@pytest.mark.parametrize("name", ["versions.json", "new"])
def test_changes_that_are_not_committed(clone, name):
    commit(clone)
    (clone / name).write_text("{}")
    assert verified.template_values(ENGLISH)["verified_changed"] == "1"


def test_sources_without_a_history_of_their_own(clone):
    assert "verified_commit" not in verified.template_values(ENGLISH)
    commit(clone.parent)
    assert "verified_commit" not in verified.template_values(ENGLISH)


def test_without_git(clone, monkeypatch):
    commit(clone)
    monkeypatch.setenv("PATH", "/nowhere")
    values = verified.template_values(ENGLISH)
    assert "verified_commit" not in values and values["verified_pytorch"] == "2.0"


def facts():
    return tuple(x[render.FACTS] for x in render.inputs().values())


def test_pages_are_rendered_anew_for_another_commit_and_other_versions(clone):
    keys = [facts()]
    (clone / "versions.json").write_text('{"pytorch": "2.1"}')
    keys.append(facts())
    commit(clone)
    keys.append(facts())
    assert len(set(keys)) == 3 and facts() == keys[-1]


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
    toolchain = ("torch 2.13.0+cpu", "Python 3.11.7 (main, Mar 4 2026)", output)
    monkeypatch.setattr(compile, "toolchain", lambda: toolchain)
    assert compile.versions() == {
        "pytorch": "2.13.0", "python": "3.11.7", "compiler": expected
    }


def test_execution_notes_the_versions_when_all_samples_ran(project):
    project.sample("print(1)\n")
    assert project.run("tools.build", "execute")[0] == 0
    noted = project.root / "_build/execute/versions.json"
    assert json.loads(noted.read_text()) == compile.versions()
    project.sample("raise SystemExit(1)\n")
    project.fail("tools.build", "execute")
    assert not noted.exists(), "some pages are of another execution"


def test_a_page_shows_them(project):
    project.write("docs/index.md", "# Title\n\nA text.\n")
    project.write("docs/auto_gallery/sample.rst", ":orphan:\n\nSample\n======\n")
    assert project.run("tools.build", "render")[0] == 0
    assert "verified-with" not in project.read("_build/render/en/index.html")
    project.write("_build/execute/versions.json", json.dumps(compile.versions()))
    commit(project.root)
    assert project.run("tools.build", "render")[0] == 0
    page = project.read("_build/render/en/index.html")
    assert f"Verified with PyTorch {compile.versions()['pytorch']}" in page
    assert "of March 4, 2026" in page
