"""The alternative text of an image is one message, and is spoken in its own language."""

import re

import pytest

CONFIGURATION = """
extensions = ["myst_parser", "sphinxext.translation.nothing_to_translate",
              "sphinxext.translation.translatable_images",
              "sphinxext.translation.faithful_translations",
              "sphinxext.translation.language_of_parts"]
"""
# An image with a text that is no markup, a link, a figure and one without a translation.
MARKDOWN = """# Title

![A *grey* flower](x.png)

[![A link](x.png)](https://example.org/)

```{figure} x.png
:alt: Of a figure

The caption.
```

![Not translated](x.png)

![](x.png)
"""
REST = """Title
=====

.. image:: x.png
   :alt: A grey flower

.. image:: x.png
   :alt: A link
   :target: https://example.org/

.. figure:: x.png
   :alt: Of a figure

   The caption.

.. |x| image:: x.png
   :alt: Not translated

|x|

.. image:: x.png
"""
KOREAN = {"A grey flower": "회색 *꽃", "A link": "링크", "Of a figure": "그림의", "Title": "제목"}
KOREAN["The caption."] = "설명."


@pytest.fixture(params=["md", "rst"])
def images(documents, request):
    documents.configure(CONFIGURATION)
    documents.write("x.png", "no image, and nobody looks")
    documents.write(f"index.{request.param}", MARKDOWN if request.param == "md" else REST)
    return documents


def test_each_is_one_message(images):
    status, output = images.build(builder="gettext")
    assert status == 0, output
    catalog = (images.root / "out/index.pot").read_text()
    texts = ["Title", "A grey flower", "A link", "Of a figure", "The caption.", "Not translated"]
    assert re.findall('msgid "(.+)"', catalog) == texts
    assert '"A grey flower": true' in (images.root / "out/plain-messages.json").read_text()


def test_only_an_untranslated_one_has_the_language_of_the_source(images):
    images.write_catalog("index", KOREAN)
    page = images.page(language="ko")
    tags = {re.search('alt="([^"]*)"', tag)[1]: tag for tag in re.findall("<img .*?>", page)}
    assert tags.keys() >= {"회색 *꽃", "링크", "그림의", "Not translated"}
    assert [alt for alt, tag in tags.items() if 'lang="en"' in tag] == ["Not translated"]


def test_a_strange_translation_is_refused(images):
    images.write_catalog("index", {"A link": "evil\u202e"})
    status, output = images.build(language="ko")
    assert status != 0 and "refused a translation with other braces" in output
    assert "evil" not in (images.root / "out/index.html").read_text()
