"""The learning path: the pages in their order, with their times."""

import re

import pytest
from docutils import nodes

from sphinxext.pages.learning_path import _total, _unfolded

CONFIGURATION = """
extensions = ["sphinxext.pages.learning_path", "sphinxext.code.program_output"]
learning_path_run_seconds = {"second": 70}
"""
INDEX = """\
Title
=====

.. learning-path::

.. toctree::
   :hidden:

   second
   part
"""
PART = """\
Part
====

.. toctree::

   first
"""


def test_pages_stand_in_order_with_their_times_and_those_below(documents):
    documents.configure(CONFIGURATION)
    documents.write("index.rst", INDEX)
    documents.write("part.rst", PART)
    documents.write("first.rst", "First\n=====\n\n" + "word " * 1490)
    code = "".join(f"   line {number}\n" for number in range(48))
    folded = ".. note::\n   :collapsible: closed\n\n   " + "word " * 900
    folded += f"\n\n.. rst-class:: sphx-glr-script-out\n\n.. code-block:: none\n\n{code}"
    documents.write("second.rst", f"Second\n======\n\n한글\n\n::\n\n{code}\n{folded}\n")
    page = documents.page()
    path = re.search(r'<div class="learning-path.*?</div>', page, re.S)[0]
    text = re.sub(r"<[^>]+>|\s+", " ", path)
    assert re.search(r"Second +about 4 min to read · 70 s to run +Part", text), text
    assert re.search(r"Part +about 11 min to read (?!·)", text), text
    assert "In all: about 0.5 h to read · 1 min to run" in text
    assert "First" not in text


def test_each_group_of_pages_has_its_own_list(documents):
    group = "{0}\n-----\n\n.. learning-path::\n\n.. toctree::\n   :hidden:\n\n   {0}\n\n"
    documents.configure(CONFIGURATION)
    documents.write("index.rst", f"Title\n=====\n\n{group.format('one')}{group.format('two')}")
    for name in ("one", "two"):
        documents.write(f"{name}.rst", f"Page {name}\n========\n")
    paths = re.findall(r'<div class="learning-path.*?</div>', documents.page(), re.S)
    assert [re.findall(r"Page \w+", path) for path in paths] == [["Page one"], ["Page two"]]


@pytest.mark.parametrize(
    "minutes, seconds, total",
    [
        (54, 100, "In all: about 1 h to read · 2 min to run"),
        (96, 20, "In all: about 1.5 h to read · 1 min to run"),
        (5, 0, "In all: about 0.5 h to read"),
    ],
)
def test_totals_are_rounded_to_the_nearest(minutes, seconds, total):
    assert _total(minutes, seconds) == total


def test_messages_of_docutils_are_not_read():
    """Docutils leaves them in some documents, such as that it has no Korean name of a directive."""
    message = nodes.system_message("", nodes.paragraph("", "not read"), level=1)
    document = nodes.section("", nodes.paragraph("", "read"), message)
    assert [node.astext() for node in _unfolded(document)] == ["read"]
