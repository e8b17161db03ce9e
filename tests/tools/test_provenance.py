"""Listings that are said to be executed were executed, and any other text is found."""

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup

from tools.check import page_facts
from tools.check import provenance as check
from tools.execute.samples import samples, source_of
from tools.pages import commands, provenance
from tools.project.languages import LANGUAGES
from tools.project.paths import GALLERY, RENDERED, ROOT, relative
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


# -- What executed what ------------------------------------------------------------


@pytest.fixture
def gallery(tmp_path):
    (tmp_path / "workers").mkdir()
    for name in ("launcher", "workers/a", "workers/b", "workers/shown"):
        (tmp_path / f"{name}.py").write_text("")
    return tmp_path


def programs(gallery, text):
    script = gallery / "sample.py"
    script.write_text(text)
    found = provenance.executes(script)
    return [path.relative_to(gallery).as_posix() for path in found]


def test_a_program_is_executed_when_it_is_started_or_imported(gallery):
    (gallery / "workers/a.py").write_text('spawn("workers/b.py")\n')
    text = 'from launcher import launch\nlaunch("workers/a.py", ranks=2)\n'
    expected = ["launcher.py", "sample.py", "workers/a.py", "workers/b.py"]
    assert programs(gallery, text) == expected


def test_a_program_is_not_executed_when_it_is_only_shown_or_named(gallery):
    text = '"""See workers/a.py.\n\n.. literalinclude:: workers/shown.py\n"""\n# workers/b.py\n'
    assert programs(gallery, text) == ["sample.py"]


def test_a_sample_that_loads_the_extension_executes_its_code_and_no_other_does():
    executed = provenance.executed()[CPP]
    assert executed[0] == COMPILING
    assert {"tutorial/step-4-one-rank", "tutorial/step-3-load-just-in-time"} <= set(executed)
    assert "tutorial/what-a-backend-needs" in executed, "its worker imports it"
    assert "operations/collectives" not in executed
    setup = provenance.executed()["extension/dummy_collectives/setup.py"]
    assert setup == [COMPILING], "an import does not build anything"


def test_every_start_of_a_program_left_a_trace_in_the_output_of_the_sample():
    claims = 0
    for script in samples():
        output = source_of(script).read_text()
        started = set(re.findall(r"^ *\$ .*?(?:\\\n.*?)*(workers/\w+\.py)$", output, re.M))
        claimed = {relative(x) for x in provenance.executes(script)}
        # What is compiled leaves its own: tests/instrumented counts its lines.
        claimed = {x for x in claimed if "/workers/" in x and x.endswith(".py")}
        started = {relative(script.parent / x) for x in started}
        code = "".join((ROOT / x).read_text() for x in {relative(script), *claimed})
        imported = {x for x in claimed if f"{Path(x).stem} import " in code}
        assert started <= claimed <= started | imported
        claims += len(claimed)
    assert claims >= len(list(GALLERY.glob("*/workers/*.py")))


COMPILING = "compile dummy_collectives"


@pytest.mark.parametrize(
    "name, runs",
    [
        ("gallery/tutorial/step_4_one_rank.py", {"tutorial/step-4-one-rank"}),
        (CPP, {COMPILING, "tutorial/step-4-one-rank", "tutorial/step-4-several-ranks"}),
        ("gallery/tutorial/workers/zero_everything.py", {"tutorial/step-4-several-ranks"}),
    ],
)
def test_an_exit_status_is_one_of_just_these_contents(monkeypatch, name, runs):
    before = _without_status()
    assert runs.isdisjoint(before)
    same = runs_module.digests_of

    def of_an_edited_file(files):
        return same(files) | {relative(x): "edited" for x in files if relative(x) == name}

    monkeypatch.setattr(runs_module, "digests_of", of_an_edited_file)
    assert runs <= _without_status()
    assert "overview/data-parallel" not in _without_status(), "it executes none of them"


def _without_status():
    found = provenance.runs()
    assert "status" not in found[provenance.RENDERING], "it has not ended"
    return {name for name, run in found.items() if run.get("status", 0) is None}


def test_a_page_says_so_when_a_run_is_not_recorded(project):
    project.write("docs/index.md", TABLE)
    project.sample("print(1)\n")
    assert project.run("tools.execute")[0] == 0

    def shown():
        assert project.run("tools.render")[0] == 0
        runs = json.loads(project.read("_build/render/provenance.json"))["runs"]
        text = BeautifulSoup(project.read("_build/render/en/index.html"), "html.parser").get_text()
        return (
            runs["tutorial/sample"]["status"],
            text.count("sample: 0"),
            text.count("not run for this"),
        )

    assert shown() == (0, 1, 0)
    record = project.root / "_build/execute/tutorial/sample.json"
    recorded = record.read_bytes()
    record.unlink()
    assert shown() == (None, 0, 1)
    record.write_bytes(recorded)
    assert shown() == (0, 1, 0)
    record.write_bytes(recorded.replace(b'"status": 0', b'"status": 1'))
    assert shown() == (None, 0, 1), "a damaged record is none"
    record.write_bytes(recorded)
    hidden = "# sphinx_gallery_start_ignore\npass\n# sphinx_gallery_end_ignore\n"
    project.write("gallery/tutorial/sample.py", project.read("gallery/tutorial/sample.py") + hidden)
    assert shown() == (None, 0, 1), "another script was run"


def test_every_run_that_executes_something_is_described():
    names = {name for runs in provenance.executed().values() for name in runs}
    names |= {name for runs in commands.typed().values() for name in runs}
    assert names == set(provenance.runs())


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


def test_the_site_as_it_is_has_a_proof_for_each_listing(site):
    assert findings(site) == []


def test_a_listing_without_a_record(site):
    replace(site, PAGE, "</article>", "<pre>more</pre></article>")
    assert findings(site) == [
        f"{language.url}/{PAGE}: listing 0 has no provenance" for language in LANGUAGES
    ]


def test_a_record_that_was_removed(site):
    data = json.loads((site / provenance.FILE).read_text())
    removed = data["listings"].pop()
    (site / provenance.FILE).write_text(json.dumps(data))
    expected = f"/{removed['page']}.html: listing {removed['number']} has no provenance"
    assert [x for x in findings(site) if not x.endswith(expected)] == []
    assert len(findings(site)) == len(LANGUAGES)


@pytest.mark.parametrize(
    "page, old, new, expected",
    [
        (PAGE, '<span class="n">zero_</span>', "<span>one_</span>", f"is not in {CPP}, lines"),
        (SAMPLE, "tensor([0., 0., 0., 0.])", "tensor([0., 1., 0., 0.])", "was recorded for it"),
        (
            SAMPLE,
            '<span class="mi">4</span>',
            "<span>5</span>",
            "gallery/tutorial/step_4_one_rank.py",
        ),
    ],
    ids=["include", "output", "cell"],
)
def test_a_text_that_was_changed_in_all_languages(site, page, old, new, expected):
    replace(site, page, old, new)
    found = findings(site)
    assert found and all(x.startswith(f"en/{page}: listing ") for x in found)
    assert any(expected in x for x in found)


def test_a_file_that_was_changed_after_the_page_was_made(site, tmp_path, monkeypatch):
    for name in ("extension", "gallery"):
        shutil.copytree(ROOT / name, tmp_path / "root" / name)
    monkeypatch.setattr(check, "ROOT", tmp_path / "root")
    assert findings(site) == []
    file = tmp_path / "root" / CPP
    file.write_text(file.read_text().replace("tensor.zero_()", "tensor.fill_(0)"))
    [found] = findings(site)
    assert f"is not in {CPP}, lines" in found


# -- In a build --------------------------------------------------------------------


def test_a_build_with_a_listing_that_nothing_executes_fails(project):
    project.write("docs/index.md", "# Title\n\n```sh\nrm -r everything\n```\n")
    project.write("docs/tutorial/sample.rst", ":orphan:\n\nSample\n======\n")
    output = project.fail("tools.render")
    assert "docs/index.md: WARNING: listing 1, from docs/index.md, lines 4 to 4" in output
    assert "say in the directive not-executed why" in output


def test_a_page_whose_output_was_changed_by_hand_is_made_anew(project):
    project.sample("print('the real output')\n")
    project.sample("print(2)\n", name="other")
    assert "2 of 2 samples executed" in project.run("tools.execute")[1]
    page = "docs/tutorial/sample.rst"
    made = project.read(page)
    assert "0 of 2 samples executed" in project.run("tools.execute")[1]
    project.write(page, made.replace("the real output", "a better one"))
    assert "1 of 2 samples executed" in project.run("tools.execute")[1]
    assert project.read(page) == made and "the real output" in made


def test_what_differs_between_builds_is_beside_the_site(project):
    languages = project.read("languages.toml")
    project.write("languages.toml", languages[: languages.index('[[language]]\ngettext = "ko"')])
    project.write("docs/index.md", "# Title\n\n```{toctree}\ntutorial/sample\n```\n")
    project.sample("print(1)\n")
    status, output = project.run("tools.html")
    assert status == 0, output
    inside, beside = "_build/html/provenance.json", "_build/provenance.json"
    first = project.read(inside)
    run = json.loads(project.read(beside))["runs"]["tutorial/sample"]
    assert run["status"] == 0 and run["seconds"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", run["last_executed"])
    assert "last_executed" not in first

    record = Record(project.root / "_build/execute/tutorial/sample.json", of_tools=False)
    record.save(record.load() | {"seconds": 12.3, "ended": "1970-01-01T00:00:00+00:00"})
    shutil.rmtree(project.root / "_build/render")
    (project.root / "_build/records/html.json").unlink()
    assert project.run("tools.html")[0] == 0
    assert project.read(inside) == first
    run = json.loads(project.read(beside))["runs"]["tutorial/sample"]
    assert (run["seconds"], run["last_executed"]) == (12.3, "1970-01-01T00:00:00+00:00")
