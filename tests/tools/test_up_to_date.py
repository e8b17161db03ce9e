"""A build with nothing to do says so, and any other builds."""

import subprocess
import sys

import pytest

from tools import html as building
from tools.check import site as check
from tools.compile import toolchain
from tools.execute import execution
from tools.pages import commands, provenance
from tools.project import git
from tools.project.paths import ROOT
from tools.publish import swap, up_to_date
from tools.render import rendering
from tools.state.records import Record
from tools.translate import extract

NOTHING = "Nothing has changed"


@pytest.fixture
def html(tmp_path, monkeypatch, capsys):
    """Run `html` with stages that do nothing, and return what it says."""
    site = tmp_path / "html"
    monkeypatch.setattr(up_to_date, "RECORD", Record(tmp_path / "record.json"))
    monkeypatch.setattr(up_to_date, "SITE", site)
    of_site = lambda folder: sorted(site.glob("*")) if folder == site else []  # noqa: E731
    monkeypatch.setattr(up_to_date, "files_below", of_site)
    monkeypatch.setattr(up_to_date, "digest", digest)
    monkeypatch.setattr(check, "check", lambda: None)
    monkeypatch.setattr(execution, "execute", lambda: (0, 0))
    monkeypatch.setattr(rendering, "render", lambda: 1)
    monkeypatch.setattr(commands, "run_quick_commands", lambda: 0)
    monkeypatch.setattr(provenance, "write_beside_site", lambda: None)
    monkeypatch.setattr(extract, "extracted", dict)

    def put_there():
        site.mkdir(exist_ok=True)
        (site / "index.html").write_text("a page")

    monkeypatch.setattr(swap, "publish", put_there)

    def run():
        building.run_html()
        return capsys.readouterr().out

    run.site = site
    assert NOTHING not in run()
    assert NOTHING in run()
    return run


def digest(files, *facts):
    return str([[path.name, path.read_text(errors="replace")] for path in files]) + str(facts)


def test_a_damaged_site_is_built_again(html):
    (html.site / "index.html").write_text("a pag3")
    assert NOTHING not in html()
    assert (html.site / "index.html").read_text() == "a page"
    assert NOTHING in html()
    (html.site / "more.html").write_text("a page")
    assert NOTHING not in html()


CHANGES = {
    "flags": lambda patch: patch.setenv("CXXFLAGS", "-O1"),
    "sources": lambda patch: patch.setattr(up_to_date, "project_files", lambda: [ROOT / "LICENSE"]),
    "compiler": lambda patch: patch.setattr(toolchain, "toolchain", lambda: ("new",)),
    "packages": lambda patch: patch.setattr(up_to_date, "installed", lambda: ["new"]),
    "commit": lambda patch: patch.setattr(git, "commit", lambda: ("new",)),
    "python": lambda patch: patch.setattr(sys, "version", "new"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found(html, monkeypatch, change):
    CHANGES[change](monkeypatch)
    assert NOTHING not in html()
    assert NOTHING in html()


def test_an_edit_during_a_build_is_built_by_the_next_one(html, monkeypatch):
    (html.site / "index.html").unlink()

    monkeypatch.setattr(rendering, "render", lambda: monkeypatch.setenv("CXXFLAGS", "-O1"))
    assert NOTHING not in html()
    assert NOTHING not in html()
    assert NOTHING in html()


def test_a_build_that_fails_is_not_remembered(html, monkeypatch):
    def fail():
        raise RuntimeError

    (html.site / "index.html").write_text("a pag3")
    with monkeypatch.context() as patch:
        patch.setattr(check, "check", fail)
        with pytest.raises(RuntimeError):
            html()
    assert NOTHING not in html()


def test_the_first_look_imports_next_to_nothing():
    code = "import sys, tools.publish.up_to_date, tools.html; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    heavy = {"sphinx", "babel", "docutils", "jinja2", "bs4", "torch", "matplotlib"}
    assert done.stdout and not heavy.intersection(done.stdout.split())
