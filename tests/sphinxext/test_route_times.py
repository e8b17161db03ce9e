"""The minutes of routes: those of the pages that the first paragraph of a row links to."""

import re

CONFIGURATION = """
extensions = ["sphinxext.pages.learning_path", "sphinxext.pages.route_times"]
"""
ROUTES = """\
Title
=====

.. list-table::
   :class: routes
   :header-rows: 1

   * - You have
     - Read
   * - a look
     - :doc:`first`, :doc:`second`

       Then: :doc:`third`

.. toctree::

   first
   second
   third
"""


def test_a_row_has_the_minutes_of_its_route_and_not_of_what_follows(documents):
    documents.configure(CONFIGURATION)
    documents.write("index.rst", ROUTES)
    for name, words in {"first": 290, "second": 440, "third": 1000}.items():
        documents.write(f"{name}.rst", f"{name}\n======\n\n" + "word " * words)
    table = re.search(r"<table.*?</table>", documents.page(), re.S)[0]
    cells = [
        re.sub(r"<[^>]+>|\s+", " ", x).strip() for x in re.findall(r"<t[hd].*?</t", table, re.S)
    ]
    assert cells[2].startswith("Minutes") and cells[5].startswith("5"), cells
