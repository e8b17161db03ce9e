"""Listings that are said to be executed were executed, and any other text is found."""

import json
import re

from tools.execute.samples import files_of, folder_of, samples, source_of
from tools.pages import provenance
from tools.project.paths import GALLERY, ROOT
from tools.state import runs as runs_module

CPP = "extension/dummy_collectives/src/dummy.cpp"
COMPILING = "compile dummy_collectives"


def test_a_sample_that_loads_the_extension_executes_its_code_and_no_other_does():
    runs = provenance.runs_for_pages()
    executing, building = (
        [name for name, run in runs.items() if path in run["executes"]]
        for path in (CPP, "extension/dummy_collectives/setup.py")
    )
    assert executing[0] == COMPILING
    assert {"tutorial/step-4-several-ranks", "tutorial/step-3-build-and-install"} <= {*executing}
    assert "tutorial/what-a-backend-needs" in executing, "its program imports it"
    assert "operations/collectives" not in executing
    assert building == [COMPILING], "an import does not build anything"


def test_every_program_of_a_sample_left_a_trace_in_its_output():
    """A program that is not started or imported would be said to be executed."""
    for script in samples():
        output, files = source_of(script).read_text(), files_of(script)
        code = "".join(path.read_text() for path in files)
        for path in files[1:]:
            if GALLERY in path.parents and path.suffix == ".py" and path.parent != GALLERY:
                started = re.search(
                    rf"^ *(\$|torchrun)?.* ({path.parent.name}/)?{path.name}$", output, re.M
                )
                collected = re.search(rf"^ *{path.name}::", output, re.M)  # by pytest
                imported = re.search(rf"(import|from) (shared\.)?{path.stem}\b", code)
                # With show=False, nothing in the output says that it was started.
                named = re.escape(f'"{path.parent.name}/{path.name}"')
                hidden = re.search(
                    rf"launch\(\s*{named}[^()]*show=False"
                    rf"|(\w+) = {named}\n[^\n]*launch\(\1,[^()]*show=False",
                    code,
                )
                assert started or collected or imported or hidden, path


def test_every_folder_in_the_gallery_belongs_to_a_sample():
    """Else its programs would never be executed."""
    folders = {path for path in GALLERY.glob("*/*") if path.is_dir()}
    folders = {path for path in folders if path.name not in {"shared", "__pycache__"}}
    assert folders <= {folder_of(script) for script in samples()}
    used = {path for script in samples() for path in files_of(script)}
    assert set(GALLERY.glob("*/shared/*.*")) <= used


def test_an_exit_status_is_one_of_just_these_contents(monkeypatch):
    assert not _runs_without_status() & {COMPILING, "tutorial/step-4-several-ranks"}
    digest = runs_module.digest

    def digest_after_an_edit(files):
        return digest(files, "edited") if ROOT / CPP in files else digest(files)

    monkeypatch.setattr(runs_module, "digest", digest_after_an_edit)
    assert {COMPILING, "tutorial/step-4-several-ranks"} <= _runs_without_status()
    assert "overview/data-parallel" not in _runs_without_status(), "it executes no dummy"


def _runs_without_status():
    runs = provenance.runs_for_pages()
    return {name for name, run in runs.items() if run.get("status", 0) is None}


def test_the_moment_of_a_run_is_beside_the_site(project):
    project.only_english()
    project.write("docs/index.md", "# Title\n\n```{toctree}\ntutorial/sample\n```\n")
    project.sample("print(1)\n")
    status, output = project.run("tools.html")
    assert status == 0, output
    inside, beside = (
        json.loads(project.read(name))["runs"]["tutorial/sample"]
        for name in ("_build/html/provenance.json", "_build/provenance.json")
    )
    assert (inside["status"], beside["status"]) == (0, 0) and "last_executed" not in inside
    assert beside["seconds"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", beside["last_executed"])
