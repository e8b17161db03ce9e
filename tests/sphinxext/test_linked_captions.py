"""The name of a file above a listing leads to the whole file."""

from bs4 import BeautifulSoup

CONFIGURATION = """
extensions = ["sphinxext.code.linked_captions"]
linked_captions_address = "https://x.example/{path}"
linked_captions_include = "long/include/"
"""
PAGE = """\
Title
=====

.. literalinclude:: code/a.py
   :caption: code/a.py

.. literalinclude:: long/include/frame/a.hpp
   :caption: frame/a.hpp

.. code-block:: python
   :caption: b.py

   x = 2
"""


def test_captions_of_files_are_links(documents):
    documents.configure(CONFIGURATION)
    documents.write("code/a.py", "x = 1\n")
    documents.write("long/include/frame/a.hpp", "int x;\n")
    documents.write("index.rst", PAGE)
    soup = BeautifulSoup(documents.page(), "html.parser")
    texts = soup.select(".code-block-caption .caption-text")
    assert [x.get_text() for x in texts] == ["code/a.py", "frame/a.hpp", "b.py"]
    assert [x.a and x.a["href"] for x in texts] == [
        "https://x.example/code/a.py",
        "https://x.example/long/include/frame/a.hpp",
        None,
    ]
