"""Pages of Sphinx work with a keyboard and a screen reader."""

CONFIGURATION = """
extensions = ["sphinxext.theme.accessible_html", "sphinxext.theme.no_data_images"]
html_static_path = ["static"]
"""
PAGE = """
Title
=====

.. code-block:: python

   "<pre>"

.. parsed-literal::

   *plain*

.. container:: table-wrapper

   wide

.. toctree::
   :caption: More

   other
"""
STYLE = """
a { mask-image: url('data:image/svg+xml;charset=utf-8,<svg fill="none"></svg>') }
b { background: url("kept.svg") }
"""


def test_boxes_headings_and_links(documents):
    documents.configure(CONFIGURATION)
    documents.write("index.rst", PAGE)
    documents.write("other.rst", "Other\n=====\n")
    documents.write("static/own.css", STYLE)
    page = documents.page()
    assert page.count('<pre tabindex="0">') == page.count("<pre") - 1 == 1
    assert '<pre class="literal-block" tabindex="0">' in page
    assert 'class="table-wrapper docutils container" tabindex="0"' in page
    assert 'aria-level="2"' in page
    assert 'aria-label="Link to this heading" title="Link to this heading"' in page
    style = (documents.root / "out/_static/own.css").read_text()
    assert "a { mask-image: none }" in style
    assert 'url("kept.svg")' in style
