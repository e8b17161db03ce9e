"""The index of the search: what it holds, and what it takes the place of."""

import json

CONFIGURATION = """
extensions = ["sphinxext.search"]
exclude_patterns = ["out"]
templates_path = ["templates"]
html_theme = "basic"
"""
TEMPLATE = """\
{% extends "page.html" %}
{% block body %}
<form><input name="q"></form><div id="search-results"></div>
{% endblock %}
"""
INDEX = """\
:search-weight: 0.5

Title
=====

Before. *Term*\\ s of ``inline_code``\\ 을 here.

.. toctree::

   second
   first

Section & more
--------------

.. code-block:: python

   call("text")  # comment

Defined
   What it means.

.. raw:: html

   <script>unseen()</script><p>seen<br>too</p>
"""


def write(documents):
    documents.write("conf.py", CONFIGURATION)
    documents.write("templates/search.html", TEMPLATE)
    documents.write("index.rst", INDEX)
    documents.write("first.rst", "First\n=====\n\nOne.\n")
    documents.write("second.rst", "Second\n======\n\nTwo.\n")


def index_of(documents):
    script = (documents.root / "out" / "search-index.js").read_text()
    start, _, data = script.partition(" = ")
    assert start == "globalThis.searchIndex"
    return json.loads(data.removesuffix(";\n"))


def test_it_holds_what_a_reader_sees(documents):
    write(documents)
    documents.page()
    pages = index_of(documents)["pages"]
    worth = [(address, weight) for address, _, weight in pages]
    assert worth == [("index.html", 0.5), ("second.html", 1), ("first.html", 1)]
    first, second = pages[0][1]
    assert first[:2] == ["title", "Title"]
    assert first[2].startswith("Before. Terms of inline_code을 here.")
    assert first[3] == ["Term"]
    assert second[:2] == ["section-more", "Section & more"]
    assert second[2] == 'call("text") # comment Defined What it means. seen too'
    assert second[3] == ["Defined"]


def test_it_takes_the_place_of_the_builtin_search(documents):
    write(documents)
    page = documents.page()
    out = documents.root / "out"
    present = {path.name for path in out.rglob("*.js")}
    assert {"search.js", "search-engine.js", "search-index.js"} <= present
    replaced = {"searchindex.js", "searchtools.js", "language_data.js"}
    replaced |= {"sphinx_highlight.js", "translations.js", "english-stemmer.js"}
    assert not replaced & present
    assert not [name for name in replaced if name in page]
    assert 'id="search-results"' in (out / "search.html").read_text()


def test_it_is_the_same_in_every_build(documents):
    write(documents)
    documents.page()
    index = documents.root / "out" / "search-index.js"
    once = index.read_bytes()
    documents.page()
    assert index.read_bytes() == once


def test_it_stays_complete_when_one_page_changes(documents):
    write(documents)
    documents.page()
    before = index_of(documents)["pages"]
    documents.write("first.rst", "First\n=====\n\nChanged.\n")
    documents.page(fresh=False)
    after = index_of(documents)["pages"]
    assert after[:2] == before[:2]
    assert after[2][1][0][2] == "Changed."


def test_a_page_is_read_again_for_its_sections_alone(documents):
    write(documents)
    documents.page()
    [known] = documents.root.rglob("search-sections.json")
    before = json.loads(known.read_text())
    page = documents.root / "out/second.html"
    page.write_text(page.read_text().replace("</body>", "<p>commit 1</p></body>"))
    documents.page(fresh=False)
    assert json.loads(known.read_text()) == before
