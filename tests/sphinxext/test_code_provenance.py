"""Each listing has a file, lines and a run; one that lacks any of them ends the build."""

import hashlib
import json

import pytest

CONFIGURATION = """
extensions = ["sphinxext.code.code_provenance"]
exclude_patterns = ["out"]
templates_path = ["templates"]
locale_dirs = ["locales"]
gettext_compact = False
html_theme = "basic"
html_context = {"greeting": "hello"}
code_provenance_scripts = {"sample": "sample.py"}
code_provenance_runs = {
    "first": {"status": 0, "executes": ["used.py", "make it"]},
    "second": {"status": 0, "executes": ["used.py"]},
    "test": {"executes": ["index.rst"]},
    "sample": {"page": "sample", "executes": ["sample.py"]},
}
"""
TEMPLATE = """\
{{ listed }} {{ greeting }} {{ language_root }}
{% for page in pages %}{% for x in page.listings %}
{{ page.title }}|{{ x.rows }}|{{ x.href }}|{{ x.kind }}|{{ x.file }}|{{ x.lines }}|
{{- x.not_executed }}
{%- for run in x.runs %}|{{ run.name }}{{ run.title }}{% endfor %};
{% endfor %}{% endfor %}
"""
USED = """\
# [a]
def f():
    # A comment.
    return 1
# [/a]
"""
INDEX = """\
Title
=====

.. literalinclude:: used.py
   :language: python
   :start-after: # [a]
   :end-before: # [/a]
   :caption: used.py

A list:

* Item::

     make this

.. code-provenance:: executed

.. toctree::

   sample
"""
SAMPLE = '''\
"""
Sample
======

::

   # typed
"""
# sphinx_gallery_start_ignore
assert True
# sphinx_gallery_end_ignore

print(1)

# %%
# Text.

print(1)
# sphinx_gallery_start_ignore
assert True
# sphinx_gallery_end_ignore
'''
PAGE = """\
Sample
======

::

   # typed

.. code-block:: Python


    print(1)

.. rst-class:: sphx-glr-script-out

 .. code-block:: none

    1

Text.

.. code-block:: Python


    print(1)
"""
REFUSED = "is not executed"
NOT_EXECUTED = """
.. not-executed::

   There is *no* GPU.

   .. literalinclude:: gpu.py
"""


@pytest.fixture
def project(documents):
    documents.write("conf.py", CONFIGURATION)
    documents.write("templates/code-provenance.html", TEMPLATE)
    documents.write("index.rst", INDEX)
    documents.write("used.py", USED)
    documents.write("gpu.py", "run_on_gpu()\n")
    documents.write("sample.py", SAMPLE)
    documents.write("sample.rst", PAGE)
    return documents


def listings(project):
    data = json.loads((project.root / "out/.doctrees/code-provenance.json").read_text())
    return {(x["page"], x["number"]): x for x in data["listings"]}


def add(project, text):
    project.write("index.rst", INDEX + text)


def test_a_typed_text_has_runs_of_its_own(project):
    add(project, "\n::\n\n   make it\n\n::\n\n   make other\n")
    project.page()
    typed = [x for x in listings(project).values() if x["kind"] == "typed"]
    runs = {x["typed"]: x["runs"] for x in typed}
    assert runs["make it"] == ["first"] and runs["make other"] == ["test"]


def test_each_listing_has_its_file_lines_and_runs(project):
    page = project.page()
    found = listings(project)
    facts = [(x["kind"], x["file"], x["lines"], x["runs"]) for x in found.values()]
    assert facts == [
        ("include", "used.py", [2, 4], ["first", "second"]),
        ("typed", "index.rst", [14, 14], ["test"]),
        ("typed", "sample.py", [7, 7], ["sample"]),
        ("cell", "sample.py", [13, 13], ["sample"]),
        ("output", "sample.py", [13, 13], ["sample"]),
        ("cell", "sample.py", [18, 18], ["sample"]),
    ]
    text = "def f():\n    # A comment.\n    return 1"
    assert found["index", 1]["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert 'id="code-1"' in page and 'id="code-2"' in page
    assert "executed hello" in page
    assert "Sample|4|sample.html#code-1|typed|sample.py|(7, 7)||sampleSample;" in page
    assert "Sample|0|sample.html#code-2|cell|sample.py|(13, 13)||sampleSample;" in page


def test_the_output_of_a_script_without_texts_stands_before_its_code(project):
    project.write("sample.py", '"""\nSample\n======\n"""\n\nprint(1)\n')
    output, code = PAGE.index(".. rst-class"), PAGE.index(".. code-block")
    page = "Sample\n======\n\n" + PAGE[output : PAGE.index("Text.")] + PAGE[code:output]
    project.write("sample.rst", page)
    project.page()
    found = [(x["kind"], x["lines"]) for x in listings(project).values()]
    assert found[2:] == [("output", [6, 6]), ("cell", [6, 6])]


def test_a_translated_comment_is_the_same_listing(project):
    configuration = CONFIGURATION.replace(
        "]", ', "sphinxext.translation.translatable_comments"]', 1
    )
    project.write("conf.py", configuration)
    project.page()
    english = listings(project)
    project.translate("index", {"A comment.": "주석입니다."})
    assert "주석입니다." in project.page(language="ko")
    assert listings(project) == english


def test_a_file_that_nothing_executes(project):
    add(project, "\n.. literalinclude:: gpu.py\n")
    status, output = project.build()
    assert status == 1
    assert f"index.rst: WARNING: listing 3, from gpu.py, lines 1 to 1, {REFUSED}" in output


def test_a_command_that_nothing_executes(project):
    project.write("conf.py", CONFIGURATION.replace('"index.rst"', '"other.rst"'))
    status, output = project.build()
    assert status == 1 and f"from index.rst, lines 14 to 14, {REFUSED}" in output


def test_a_listing_that_is_not_that_of_its_script(project):
    project.write("sample.rst", PAGE.replace("print(1)", "print(2)", 1))
    status, output = project.build()
    assert status == 1
    assert "sample.rst: WARNING: listing 2, from sample.py, has a text that the file" in output


def test_not_executed_says_so_with_the_reason(project):
    add(project, NOT_EXECUTED)
    page = project.page()
    assert '<div class="not-executed"><p class="label">Not executed</p>\n<p>There is ' in page
    found = listings(project)["index", 3]
    assert (found["not_executed"], found["runs"]) == ("There is no GPU.", [])


def test_the_reason_is_translated(project):
    add(project, NOT_EXECUTED)
    project.translate("index", {"There is *no* GPU.": "GPU가 *없습니다*."})
    assert "GPU가 <em>없습니다</em>" in project.page(language="ko")
    assert listings(project)["index", 3]["not_executed"] == "GPU가 없습니다."


def test_not_executed_in_part_needs_a_run_for_the_rest(project):
    partly = NOT_EXECUTED.replace("executed::\n", "executed::\n   :partly:\n")
    add(project, partly.replace("gpu.py", "used.py"))
    assert '<p class="label">Executed in part</p>' in project.page()
    assert listings(project)["index", 3]["runs"] == ["first", "second"]
    add(project, partly)
    status, output = project.build()
    assert status == 1 and REFUSED in output


def test_highlighted_lines_are_those_that_were_not_executed(project):
    project.write("used.py", f"{USED}# [b]\nb = 2\nc = 3\n")
    partly = NOT_EXECUTED.replace("executed::\n", "executed::\n   :partly:\n")
    options = "\n      :start-after: [b]\n      :emphasize-lines: 2"
    add(project, partly.replace("gpu.py", f"used.py{options}"))
    assert '<span class="hll">' in project.page()
    found = listings(project)["index", 3]
    last = USED.count("\n") + 3
    assert found["lines"] == [last - 1, last] and found["lines_not_executed"] == [last]


def test_a_reason_is_needed(project):
    add(project, NOT_EXECUTED.replace("There is *no* GPU.", "..\n"))
    status, output = project.build()
    assert status == 1 and "not-executed needs a reason" in output
