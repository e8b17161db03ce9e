"""Each listing has a file, lines and a run; one that lacks any of them ends the build."""

import json

import pytest

CONFIGURATION = """
extensions = ["sphinxext.code.code_provenance", "sphinxext.translation.translatable_comments"]
code_provenance_scripts = {"sample": "sample.py"}
code_provenance_runs = {
    "make it": {"kind": "command", "status": 0, "executes": ["used.py", "make it"]},
    "compile": {"kind": "compile", "status": None, "executes": ["used.py"]},
    "test": {"kind": "match", "executes": ["index.rst"]},
    "sample": {"kind": "sample", "status": 0, "seconds": 5, "page": "sample",
               "executes": ["sample.py"]},
}
code_provenance_unexecuted = {"used.py": [7]}
"""
USED = """\
# [a]
def f():
    # A comment.
    return 1
# [/a]
b = 2
c = 3
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
NOT_EXECUTED = """
.. not-executed::

   There is *no* ``GPU``.

   .. literalinclude:: gpu.py
"""
PARTLY = NOT_EXECUTED.replace("executed::\n", "executed::\n   :partly:\n")


@pytest.fixture
def project(documents):
    documents.configure(CONFIGURATION)
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


def test_each_listing_has_its_file_lines_and_runs(project):
    add(project, "\n::\n\n   make it\n")
    page = project.page()
    facts = [(x["kind"], x["file"], x["lines"], x["runs"]) for x in listings(project).values()]
    assert facts == [
        ("include", "used.py", [2, 4], ["make it", "compile"]),
        ("typed", "index.rst", [14, 14], ["test"]),
        ("typed", "index.rst", [22, 22], ["make it"]),
        ("typed", "sample.py", [7, 7], ["sample"]),
        ("cell", "sample.py", [13, 13], ["sample"]),
        ("output", "sample.py", [13, 13], ["sample"]),
        ("cell", "sample.py", [18, 18], ["sample"]),
    ]
    assert 'id="code-1"' in page and 'id="code-2"' in page


def test_the_output_of_a_script_without_texts_stands_before_its_code(project):
    project.write("sample.py", '"""\nSample\n======\n"""\n\nprint(1)\n')
    output, code = PAGE.index(".. rst-class"), PAGE.index(".. code-block")
    page = "Sample\n======\n\n" + PAGE[output : PAGE.index("Text.")] + PAGE[code:output]
    project.write("sample.rst", page)
    project.page()
    sources = [(x["kind"], x["lines"]) for x in listings(project).values()]
    assert sources[2:] == [("output", [6, 6]), ("cell", [6, 6])]


def test_not_executed_says_so_with_the_translated_reason(project):
    options = "\n      :start-after: [/a]"
    add(project, NOT_EXECUTED + PARTLY.replace("gpu.py", f"used.py{options}"))
    page = project.page()
    assert '<div class="not-executed"><p class="label">Not executed</p>\n<p>There is ' in page
    assert '<p class="label">Executed in part</p>' in page and '<span class="hll">' in page
    english = listings(project)
    not_executed, partly = english["index", 3], english["index", 4]
    assert (not_executed["not_executed"], not_executed["runs"]) == ("There is no `GPU`.", [])
    assert partly["runs"] == ["make it", "compile"]
    assert (partly["lines"], partly["lines_not_executed"]) == ([6, 7], [7])

    project.write_catalog(
        "index", {"A comment.": "주석입니다.", "There is *no* ``GPU``.": "``GPU`` 가 없습니다."}
    )
    page = project.page(language="ko")
    assert "주석입니다." in page and "가 없습니다." in page
    translated = listings(project)
    for listing in translated.values():
        if reason := listing.get("not_executed"):
            assert reason == "`GPU` 가 없습니다."
            listing["not_executed"] = "There is no `GPU`."
    assert translated == english


def test_a_line_that_no_run_executes_is_highlighted_or_ends_the_build(project):
    """With the same numbers in the file, wherever a listing begins."""
    part = "\n.. literalinclude:: used.py\n   :lines: 6-\n"
    add(project, part)
    status, output = project.build()
    assert status == 1 and output.count("WARNING") == 1
    assert "index.rst:20: WARNING: no run executes line 7 of used.py: put the listing" in output
    add(project, PARTLY.replace("gpu.py", "used.py\n      :lines: 6-"))
    assert '<span class="hll"><span class="n">c</span>' in project.page()
    project.configure(CONFIGURATION.replace("[7]", "[]"))
    add(project, part)
    assert '<span class="hll">' not in project.page()


def test_a_listing_without_a_proof_ends_the_build(project):
    project.configure(CONFIGURATION.replace('"index.rst"', '"other.rst"'))
    project.write("sample.rst", PAGE.replace("print(1)", "print(2)", 1))
    without_reason = NOT_EXECUTED.replace("There is *no* ``GPU``.", "..\n")
    add(project, f"\n.. literalinclude:: gpu.py\n{PARTLY}{without_reason}")
    status, output = project.build()
    assert status == 1, output
    for fault in (
        "index.rst: WARNING: listing 2, from index.rst, lines 14 to 14, is not executed: show code",
        "index.rst: WARNING: listing 3, from gpu.py, lines 1 to 1, is not executed",
        "index.rst: WARNING: listing 4, from gpu.py, lines 1 to 1, is not executed",
        "index.rst:34: WARNING: not-executed needs a reason",
        "sample.rst: WARNING: listing 2, from sample.py, has a text that the file does not",
    ):
        assert fault in output, output
    assert output.count("WARNING") == 7, (
        "a listing without a reason, and an output of its code, too"
    )
