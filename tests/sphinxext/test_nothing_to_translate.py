"""Translators are asked for words only, and what has none cannot be translated."""

import re

TEXT = """
Title
=====

.. list-table::

   * - ``wait``
     - ✓
     - 2.5
     - yes

.. literalinclude:: folder/file.py
   :caption: folder/file.py

.. literalinclude:: folder/file.py
   :caption: The file
"""


def test_messages_have_words(documents):
    documents.configure('extensions = ["sphinxext.translation.nothing_to_translate"]')
    documents.write("index.rst", TEXT)
    documents.write("folder/file.py", "x = 1\n")
    status, output = documents.build(builder="gettext")
    assert status == 0, output
    catalog = (documents.root / "out/index.pot").read_text()
    assert re.findall('msgid "(.+)"', catalog) == ["Title", "yes", "The file"]
    documents.write_catalog("index", {"✓": "–", "2.5": "3", "folder/file.py": "x", "yes": "예"})
    page = documents.page(language="ko")
    assert "✓" in page and "2.5" in page and "folder/file.py" in page and "예" in page
