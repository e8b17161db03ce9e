"""The learning path: the pages in their order, with their times."""

import re
from types import SimpleNamespace

import pytest
from docutils import nodes

from sphinxext.pages.learning_path import _said, _texts, measure

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
    second = "Second about 4 min to read · 10 min with what is folded · 70 s to run Part"
    assert second in re.sub(" +", " ", text)
    assert re.search(r"Part +about 11 min to read (?!·)", text), text
    assert "In all: about 15 min to read · 21 min with what is folded · 70 s to run" in text
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
    "times, said",
    [
        ((1, 1, 0), "about 1 min to read"),
        ((54, 60, 119), "about 54 min to read · 119 s to run"),
        ((96, 170, 130), "about 96 min to read · 3 h with what is folded · 2 min to run"),
        ((853, 1259, 540), "about 14 h to read · 21 h with what is folded · 9 min to run"),
    ],
)
def test_times_are_exact_until_they_are_hours(times, said):
    assert _said(times) == said


@pytest.mark.parametrize(
    "text", ["two words " * 75, "два слова " * 75, "한글" * 170, "中文" * 125, "かな" * 200]
)
def test_every_script_takes_time_to_read(text):
    env = SimpleNamespace(docname="page", metadata={"page": {}})
    measure(SimpleNamespace(env=env), nodes.paragraph("", text))
    assert env.metadata["page"]["reading_minutes"] == (1, 1)


def test_messages_of_docutils_are_not_read():
    """Docutils leaves them in some documents, such as that it has no Korean name of a directive."""
    message = nodes.system_message("", nodes.paragraph("", "not read"), level=1)
    document = nodes.section("", nodes.paragraph("", "read"), message)
    assert [(node.astext(), is_folded) for node, is_folded in _texts(document)] == [("read", False)]
