"""Listings that are said to be executed were executed, and any other text is found."""

import json
import re
import shutil
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup

from tools.check import page_facts
from tools.check import provenance as check
from tools.execute.samples import files_of, folder_of, samples, source_of
from tools.pages import provenance
from tools.project.languages import LANGUAGES
from tools.project.paths import GALLERY, RENDERED, ROOT
from tools.state import runs as runs_module
from tools.state.records import Record

PAGE = "tutorial/step-1-subclass-backend.html"
SAMPLE = "tutorial/step-4-one-rank.html"
TABLE = """\
# Title

```{toctree}
tutorial/sample
```

```{code-provenance} executed
```
"""
CPP = "extension/dummy_collectives/src/dummy.cpp"
COMPILING = "compile dummy_collectives"
RECORD = "_build/execute/tutorial/sample.json"
INSIDE, BESIDE = "_build/html/provenance.json", "_build/provenance.json"


# -- What executed what ------------------------------------------------------------


def test_a_sample_that_loads_the_extension_executes_its_code_and_no_other_does():
    runs = provenance.runs_for_pages()
    executing, building = (
        [name for name, run in runs.items() if path in run["executes"]]
        for path in (CPP, "extension/dummy_collectives/setup.py")
    )
    assert executing[0] == COMPILING
    assert {"tutorial/step-4-one-rank", "tutorial/step-3-load-just-in-time"} <= {*executing}
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
                    rf"^ *(\$|torchrun)?.* {path.parent.name}/{path.name}$", output, re.M
                )
                assert started or re.search(rf"(import|from) (shared\.)?{path.stem}\b", code), path


def test_every_folder_in_the_gallery_belongs_to_a_sample():
    """Else its programs would never be executed."""
    folders = {path for path in GALLERY.glob("*/*") if path.is_dir()}
    folders = {path for path in folders if path.name not in {"shared", "__pycache__"}}
    assert folders <= {folder_of(script) for script in samples()}
    used = {path for script in samples() for path in files_of(script)}
    assert set(GALLERY.glob("*/shared/*.*")) <= used


def test_an_exit_status_is_one_of_just_these_contents(monkeypatch):
    assert "status" not in provenance.runs_for_pages()[provenance.RENDERING], "it has not ended"
    assert not _runs_without_status() & {COMPILING, "tutorial/step-4-one-rank"}
    digest = runs_module.digest

    def digest_after_an_edit(files):
        return digest(files, "edited") if ROOT / CPP in files else digest(files)

    monkeypatch.setattr(runs_module, "digest", digest_after_an_edit)
    assert {COMPILING, "tutorial/step-4-one-rank"} <= _runs_without_status()
    assert "overview/data-parallel" not in _runs_without_status(), "it executes no dummy"


def _runs_without_status():
    runs = provenance.runs_for_pages()
    return {name for name, run in runs.items() if run.get("status", 0) is None}


def only_in_english(project):
    languages = project.read("languages.toml")
    project.write("languages.toml", languages[: languages.index('[[language]]\ngettext = "ko"')])


def test_a_page_says_so_when_a_run_is_not_recorded(project):
    only_in_english(project)
    project.write("docs/index.md", TABLE)
    project.sample("print(1)\n")
    assert project.run("tools.execute")[0] == 0

    def status_and_notes():
        assert project.run("tools.render")[0] == 0
        runs = json.loads(project.read("_build/render/provenance.json"))["runs"]
        text = BeautifulSoup(project.read("_build/render/en/index.html"), "html.parser").get_text()
        notes = text.count("sample: 0"), text.count("not run for this")
        return runs["tutorial/sample"]["status"], *notes

    assert status_and_notes() == (0, 1, 0)
    recorded = project.read(RECORD)
    project.write(RECORD, recorded.replace('"status": 0', '"status": 1'))
    assert status_and_notes() == (None, 0, 1), "a damaged record is none"
    project.write(RECORD, recorded)
    hidden = "# sphinx_gallery_start_ignore\npass\n# sphinx_gallery_end_ignore\n"
    project.write("gallery/tutorial/sample.py", project.read("gallery/tutorial/sample.py") + hidden)
    assert status_and_notes() == (None, 0, 1), "another script was run"


# -- The check of the rendered pages -----------------------------------------------


@pytest.fixture
def site(tmp_path):
    """The pages that the tests here change, and the records."""
    folder = tmp_path / "site"
    for language in LANGUAGES:
        for page in (PAGE, SAMPLE):
            (folder / language.url / page).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(RENDERED / language.url / page, folder / language.url / page)
    data = json.loads((RENDERED / provenance.FILE).read_text())
    data["listings"] = [x for x in data["listings"] if f"{x['page']}.html" in (PAGE, SAMPLE)]
    (folder / provenance.FILE).write_text(json.dumps(data))
    return folder


def findings(site):
    facts = {x: SimpleNamespace(**page_facts.read(x.read_text())) for x in site.rglob("*.html")}
    return check.findings(site, {PAGE, SAMPLE}, facts)


def replace(site, page, old, new):
    for language in LANGUAGES:
        path = site / language.url / page
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))


def test_a_listing_without_a_record(site):
    assert findings(site) == []
    replace(site, PAGE, "</article>", "<pre>more</pre></article>")
    assert findings(site) == [
        f"{language.url}/{PAGE}: listing 0 has no provenance" for language in LANGUAGES
    ]


def test_a_record_without_a_listing(site):
    data = json.loads((site / provenance.FILE).read_text())
    data["listings"].append(data["listings"][-1] | {"number": 999})
    (site / provenance.FILE).write_text(json.dumps(data))
    assert [x.rpartition(": ")[2] for x in findings(site)] == [
        "listing 999 has no provenance" for _ in LANGUAGES
    ]


def test_a_text_that_was_changed_in_all_languages(site):
    replace(site, PAGE, '<span class="n">zero_</span>', "<span>one_</span>")
    [fault] = findings(site)
    assert fault.startswith(f"en/{PAGE}: listing ") and "differs from the text" in fault


# -- In a build --------------------------------------------------------------------


def test_a_build_with_a_listing_that_nothing_executes_fails(project):
    project.write("docs/index.md", "# Title\n\n```sh\nrm -r everything\n```\n")
    output = project.fail("tools.render")
    assert "docs/index.md: WARNING: listing 1, from docs/index.md, lines 4 to 4" in output
    assert "say in the directive not-executed why" in output


def test_what_differs_between_builds_is_beside_the_site(project):
    only_in_english(project)
    project.write("docs/index.md", "# Title\n\n```{toctree}\ntutorial/sample\n```\n")
    project.sample("print(1)\n")
    status, output = project.run("tools.html")
    assert status == 0, output
    first = project.read(INSIDE)
    run = json.loads(project.read(BESIDE))["runs"]["tutorial/sample"]
    assert run["status"] == 0 and run["seconds"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", run["last_executed"])

    record = Record(project.root / RECORD, of_tools=False)
    record.save(record.load() | {"seconds": 12.3, "ended": "1970-01-01T00:00:00+00:00"})
    shutil.rmtree(project.root / "_build/render")
    assert project.run("tools.html")[0] == 0
    assert project.read(INSIDE) == first and "last_executed" not in first
    run = json.loads(project.read(BESIDE))["runs"]["tutorial/sample"]
    assert (run["seconds"], run["last_executed"]) == (12.3, "1970-01-01T00:00:00+00:00")
