"""Parts in the source language have its lang attribute."""

CONFIGURATION = """
extensions = ["sphinxext.translation.language_of_parts"]
language_of_parts_classes = ["output"]
"""
TEXT = """
Title
=====

First.

Second.

.. rst-class:: output

.. code-block:: none

   printed
"""


def page(documents, language):
    documents.configure(CONFIGURATION)
    documents.write("index.rst", TEXT)
    documents.write_catalog("index", {"First.": "첫째.", "CPU": "CPU"})
    return documents.page(language=language)


def test_in_a_translated_page(documents):
    text = page(documents, "ko")
    assert "<p>첫째.</p>" in text
    assert '<p lang="en">Second.</p>' in text
    assert '<h1 lang="en">Title<' in text
    assert text.count('<div class="output highlight-none notranslate" lang="en">') == 1


def test_not_in_the_source_language(documents):
    text = page(documents, "en")
    assert "<p>Second.</p>" in text and text.count('lang="en"') == 1, "that of the page"
