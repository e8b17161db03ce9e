"""The index of the search: its contents, and the files of Sphinx that it replaces."""

import json

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
   <dl><dt>one <em>whole</em>&#127; term</dt></dl>
"""
# The same sign before and after a term.
MARKS = str.maketrans("<>", "\x7f\x7f")


def write(documents):
    documents.configure('extensions = ["sphinxext.search"]')
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
    index = index_of(documents)
    worth = [(address, weight) for address, weight, _ in index["pages"]]
    assert worth == [("index.html", 0.5), ("second.html", 1), ("first.html", 1)]
    assert [anchors for *_, anchors in index["pages"]] == [
        ["title", "section-more"],
        ["second"],
        ["first"],
    ]
    assert index["headings"] == ["Title", "Section & more", "Second", "First"]
    first, second, *others = index["texts"]
    assert first.startswith("Before. <Term>s of inline_code을 here.".translate(MARKS))
    assert second == (
        'call("text") # comment <Defined> What it means. seen too <one whole term>'
    ).translate(MARKS)
    assert others == ["Two.", "One."]


def test_it_takes_the_place_of_the_builtin_search(documents):
    write(documents)
    page = documents.page()
    out = documents.root / "out"
    present = {path.name for path in out.rglob("*.js")}
    assert {"search.js", "search-engine.js", "search-words.js", "search-index.js"} <= present
    replaced = {"searchindex.js", "searchtools.js", "language_data.js"}
    replaced |= {"sphinx_highlight.js", "translations.js", "english-stemmer.js"}
    assert not replaced & present
    assert not [name for name in replaced if name in page]
    assert 'id="search-results"' in (out / "search.html").read_text()


def test_it_stays_complete_when_one_page_changes(documents):
    write(documents)
    documents.page()
    before = index_of(documents)
    documents.write("first.rst", "First\n=====\n\nChanged.\n")
    documents.page(fresh=False)
    after = index_of(documents)
    assert after.pop("texts") == [*before.pop("texts")[:-1], "Changed."]
    assert after == before
