"""Another project copies the extensions under another name and uses only their docstrings."""

import importlib
import json
import shutil
from textwrap import indent

import pytest

from tools.project.paths import ROOT

EXTENSIONS = ROOT / "sphinxext"
NAME = "vendored"
CONFIGURATION = f"""
import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
assert find_spec("sphinxext") is None and find_spec("tools") is None

extensions = [
    "{NAME}.code.code_provenance",
    "{NAME}.pages.diagrams",
    "{NAME}.search",
    "{NAME}.translation.translatable_comments",
]
exclude_patterns = ["out", "en", "ko", "{NAME}"]
templates_path = ["templates"]
locale_dirs = ["locales"]
code_provenance_executed = {{"hello.py": ["unit tests"]}}
code_provenance_runs = {{"unit tests": {{}}}}
"""
# Each is in the docstring of its extension.
SEARCH = """\
{% extends "page.html" %}
{% block body %}
<p id="search-failed" hidden>The search index could not be loaded.</p>
<form><input name="q"></form>
<div id="search-results"></div>
{% endblock %}
"""
DRAWING = """\
<svg viewBox="0 0 340 120"><text x="10" y="20">{{ _("process A") }}</text></svg>
"""
LISTINGS = """\
{% for page in pages %}{% for listing in page.listings %}
<p><a href="{{ listing.href }}">{{ page.title | e }}</a>, {{ listing.file }}:
{{ listing.runs | map(attribute="name") | join(", ") or listing.not_executed | e }}</p>
{% endfor %}{% endfor %}
"""
IN_DOCSTRINGS = {
    "search": SEARCH,
    "pages.diagrams": DRAWING,
    "code.code_provenance": LISTINGS,
}
PAGE = """\
Home
====

Words of the page.

.. diagram:: process

.. literalinclude:: hello.py
   :language: python

.. not-executed::

   There is no GPU.

   .. code-block:: python

      run_on_gpu()

.. code-provenance:: all
"""
KOREAN = {
    "Home": "처음",
    "Words of the page.": "페이지의 글.",
    "process A": "프로세스 A",
    "Say hello.": "인사합니다.",
    "There is no GPU.": "GPU가 없습니다.",
}


@pytest.fixture(scope="module")
def project(shared_documents):
    """Return a project with a copy of the extensions, translated into Korean."""
    project = shared_documents
    # Nothing is imported from this project, and the copy only because of conf.py.
    project.environment = {"PYTHONPATH": "", "PYTHONSAFEPATH": "1"}
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(EXTENSIONS, project.root / NAME, ignore=ignored)
    project.write("conf.py", CONFIGURATION)
    project.write("index.rst", PAGE)
    project.write("hello.py", 'print("hello")  # Say hello.\n')
    project.write("_diagrams/process.svg", DRAWING)
    project.write("templates/search.html", SEARCH)
    project.write("templates/code-provenance.html", LISTINGS)
    project.translate("index", KOREAN)
    project.translate("sphinx", {"Pages found: %(count)s": "찾은 페이지: %(count)s"})
    return project


@pytest.fixture(scope="module")
def sites(project):
    """Return the folders of the sites in English and in Korean."""
    folders = []
    for language in ("en", "ko"):
        status, output = project.build(language=language)
        assert status == 0, output
        folders.append((project.root / "out").rename(project.root / language))
    return folders


def pages(sites):
    return [(site / "index.html").read_text() for site in sites]


def search_index(site):
    start, _, data = (site / "search-index.js").read_text().partition(" = ")
    assert start == "globalThis.searchIndex"
    return json.loads(data.removesuffix(";\n"))


def test_no_file_has_the_name_of_the_folder_in_it():
    files = [path for path in EXTENSIONS.rglob("*") if path.suffix in {".py", ".js", ".css"}]
    assert len(files) > 30
    assert [path for path in files if EXTENSIONS.name in path.read_text()] == []


def test_the_examples_are_those_of_the_docstrings():
    for name, example in IN_DOCSTRINGS.items():
        assert indent(example, "    ") in importlib.import_module(f"sphinxext.{name}").__doc__


def test_diagrams(sites):
    english, korean = pages(sites)
    assert '<svg viewBox="0 0 340 120"><text x="10" y="20">process A</text></svg>' in english
    assert '<text x="10" y="20">프로세스 A</text>' in korean and "process A" not in korean


def test_translatable_comments(sites):
    english, korean = pages(sites)
    assert "# Say hello." in english
    assert "# 인사합니다." in korean and "Say hello." not in korean


def test_code_provenance(sites):
    english, korean = pages(sites)
    assert 'id="code-1"' in english and '<p class="label">Not executed</p>' in english
    assert '<p><a href="#code-1">Home</a>, hello.py:\nunit tests</p>' in english
    assert '<p><a href="#code-1">처음</a>, hello.py:\nunit tests</p>' in korean
    assert '<p><a href="#code-2">처음</a>, index.rst:\nGPU가 없습니다.</p>' in korean
    for site in sites:
        data = json.loads((site / ".doctrees/code-provenance.json").read_text())
        assert [(x["file"], x["lines"], x["runs"]) for x in data["listings"]] == [
            ("hello.py", [1, 1], ["unit tests"]),
            ("index.rst", [17, 17], []),
        ]


def test_search(sites):
    for site, page in zip(sites, pages(sites), strict=True):
        for name in ("search.js", "search-engine.js"):
            source = EXTENSIONS / "search/static" / name
            assert (site / "_static" / name).read_bytes() == source.read_bytes()
        assert 'src="_static/search.js' in page and "searchtools.js" not in page
        assert 'id="search-results"' in (site / "search.html").read_text()
    english, korean = map(search_index, sites)
    assert english["headings"] == ["Home"] and "Words of the page." in english["texts"][0]
    assert korean["headings"] == ["처음"] and "페이지의 글." in korean["texts"][0]
    assert "프로세스 A" in korean["texts"][0] and "인사합니다." in korean["texts"][0]
    assert korean["messages"]["found"] == "찾은 페이지: %(count)s"


def test_translators_receive_the_messages(project, sites):
    status, output = project.build("gettext")
    assert status == 0, output
    template = (project.root / "out/index.pot").read_text()
    assert 'msgid "process A"' in template and 'msgid "Say hello."' in template


def test_a_listing_without_a_proof_is_found(project, sites):
    project.write("conf.py", CONFIGURATION.replace('"hello.py"', '"other.py"'))
    status, output = project.build()
    assert status == 1 and "from hello.py, lines 1 to 1, is not executed" in output
