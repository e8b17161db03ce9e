"""The learning path: the pages in their order, with their times."""

import re

CONFIGURATION = """
extensions = ["sphinxext.pages.learning_path"]
exclude_patterns = ["out"]
learning_path_run_seconds = {"second": 70}
html_theme = "basic"
"""
INDEX = """\
Title
=====

.. learning-path:: 1

.. toctree::
   :hidden:
   :caption: The part

   second
   first

.. toctree::
   :hidden:

   not-listed
"""


def test_pages_stand_in_order_with_their_times(documents):
    documents.write("conf.py", CONFIGURATION)
    documents.write("index.rst", INDEX)
    documents.write("first.rst", "First\n=====\n\n" + "word " * 1490)
    code = "".join(f"   line {number}\n" for number in range(45))
    documents.write("second.rst", "Second\n======\n\n한글\n\n::\n\n" + code)
    documents.write("not-listed.rst", "Not listed\n==========\n")
    page = documents.page()
    path = re.search(r'<div class="learning-path.*?</div>', page, re.S)[0]
    text = re.sub(r"<[^>]+>|\s+", " ", path)
    assert "The part" in text
    assert re.search(r"Second +about 4 min to read · 70 s to run", text), text
    assert re.search(r"First +about 10 min to read (?!·)", text), text
    assert "In all: 0 hours to read, 2 minutes to run." in text
    assert "Not listed" not in text
