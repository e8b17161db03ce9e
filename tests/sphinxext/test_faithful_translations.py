"""A translation is untrusted input: whatever it contains, the page does not change."""

import random

import pytest
from bs4 import BeautifulSoup

REST = "Title\n=====\n\nSee `the site <https://example.org/a>`__ and ``code`` in *it*.\n"
MARKDOWN = "# Title\n\nSee [the site](https://example.org/a) and `code` in *it*.\n"
REST_MESSAGE = "See `the site <https://example.org/a>`__ and ``code`` in *it*."
MARKDOWN_MESSAGE = "See [the site](https://example.org/a) and `code` in *it*."

REST_ATTACKS = {
    "other host": "`사이트 <https://evil.example/a>`__ ``code`` *것*",
    "javascript": "`사이트 <javascript:alert(1)>`__ ``code`` *것*",
    "data": "`사이트 <data:text/html,x>`__ ``code`` *것*",
    "more links": "`사이트 <https://example.org/a>`__ ``code`` *것* https://evil.example",
    "less": "사이트 ``code`` *것*",
    "literal": "`사이트 <https://example.org/a>`__ ``rm -rf`` *것*",
    "download": ":download:`secret.txt` `사이트 <https://example.org/a>`__ ``code`` *것*",
    "raw": ".. raw:: html\\n\\n   <script>evil()</script>",
    "include": ".. include:: secret.txt",
    "literalinclude": ".. literalinclude:: secret.txt",
    "csv": ".. csv-table::\\n   :file: secret.txt",
    "image": "|x|\\n\\n.. |x| image:: https://evil.example/x.png",
    "directive that fails": ".. productionlist:: evil",
    "metadata": ".. meta::\\n   :refresh: 0;url=//evil.example",
    "contents": ".. toctree::\\n\\n   index",
    "raw role": ".. role:: h(raw)\\n   :format: html\\n\\n:h:`<script>evil()</script>`",
}
MARKDOWN_ATTACKS = {
    "other host": "[사이트](https://evil.example/a) `code` *것*",
    "javascript": "[사이트](javascript:alert(1)) `code` *것*",
    "script": "[사이트](https://example.org/a) `code` *것* <script>evil()</script>",
    "handler": "[사이트](https://example.org/a) `code` *것* <b onclick='evil()'>x</b>",
    "direction in a title": "[사이트](https://example.org/a '\u202eevil') `code` *것*",
    "invisible in a title": "[사이트](https://example.org/a 'evil\u2060') `code` *것*",
    "block": "<script>evil()</script>",
    "image": "[사이트](https://example.org/a) `code` *것* ![x](https://evil.example/x.png)",
    "include": "```{include} secret.txt\\n```",
    "eval": "```{eval-rst}\\n.. raw:: html\\n\\n   <script>evil()</script>\\n```",
    "definition": "[사이트]\\n\\n[사이트]: javascript:evil()",
    "control character": "[사이트](https://example.org/a) `code` *것* \x1b evil",
    "direction": "[사이트](https://example.org/a) `code` *것* \u202e evil",
    "fenced": ":::{raw} html\\n<script>evil()</script>\\n:::",
    "role": "[사이트](https://example.org/a) `code` *것* {download}`secret.txt`",
    "substitution": "{{ env.config }} [x](https://example.org/a) `code` *것* <i>x</i>",
}


@pytest.fixture
def site(documents):
    documents.configure(
        'extensions = ["myst_parser", "sphinxext.translation.faithful_translations"]'
    )
    documents.write("secret.txt", "the secret")
    documents.write(
        "templates/layout.html",
        '{% extends "!layout.html" %}'
        '{% block footer %}<p title="{{ _("Made here") }}">{{ _("Made here") }}</p>'
        '{% trans author="me" %}by {{ author }}{% endtrans %}'
        '{{ _("Licence: <b><i>free</i></b>") }}{% endblock %}',
    )
    return documents


@pytest.mark.parametrize(
    "suffix, text, message, attacks",
    [
        ("rst", REST, REST_MESSAGE, REST_ATTACKS),
        ("md", MARKDOWN, MARKDOWN_MESSAGE, MARKDOWN_ATTACKS),
    ],
    ids=["rest", "markdown"],
)
def test_attacks_are_refused(site, suffix, text, message, attacks):
    """One page for each attack; all of them show the English text."""
    pages = [f"page-{number}" for number in range(len(attacks))]
    site.write("index.rst", "Title\n=====\n\n.. toctree::\n\n   " + "\n   ".join(pages))
    for page, translation in zip(pages, attacks.values(), strict=True):
        site.write(f"{page}.{suffix}", text)
        site.write_catalog(page, {message: translation})
    status, output = site.build(language="ko")
    assert status != 0, "a warning, and warnings are errors"
    for page, name in zip(pages, attacks, strict=True):
        html = (site.root / "out" / f"{page}.html").read_text()
        assert "evil" not in html and "the secret" not in html, name
        assert "javascript:" not in html, name
        assert "See <a" in html and 'href="https://example.org/a"' in html, name
        assert f"{page}.{suffix}" in output, name
    assert "Traceback" not in output and "Extension error" not in output
    assert not (site.root / "out" / "_downloads").exists()


@pytest.mark.parametrize("source", ["index.rst", "index.md"])
def test_a_faithful_translation_in_another_order_is_taken(site, source):
    rest = source.endswith("rst")
    message = REST_MESSAGE if rest else MARKDOWN_MESSAGE
    translation = (
        "*것* 안의 ``code`` 그리고 `사이트 <https://example.org/a>`__."
        if rest
        else "*것* 안의 `code` 그리고 [사이트](https://example.org/a)."
    )
    site.write(source, REST if rest else MARKDOWN)
    site.write_catalog("index", {message: translation})
    page = site.page(language="ko")
    assert "사이트</a>" in page and "See" not in page


@pytest.mark.parametrize(
    "message, attack",
    [
        ("Made here", "<script>evil()</script>"),
        ("Made here", '\\" onclick=\\"evil()'),
        ("Link to this heading", '\\" onclick=\\"evil()'),
        ("by %(author)s", "%(evil)s"),
        ("by %(author)s", "%(author)d evil"),
        ("by %(author)s", "evil %(author)s %"),
        ("Made here", "evil\\nimport os"),
        ("Made here", "evil\u202e"),
        ("Made here", "evil\u200b"),
        ("Licence: <b><i>free</i></b>", "</b><i>evil</i><b>"),
        ("Licence: <b><i>free</i></b>", "<b><i>evil</b></i>"),
    ],
    ids=[
        *("tag", "attribute", "of Sphinx itself", "name", "type", "percent"),
        *("line break", "direction", "invisible", "swapped tags", "crossed tags"),
    ],
)
def test_templates(site, message, attack):
    site.write("index.rst", "Title\n=====\n")
    site.write_catalog("sphinx", {message: attack})
    status, output = site.build(language="ko")
    assert status != 0 and f"other HTML or placeholders than {message!r}" in output
    page = (site.root / "out" / "index.html").read_text()
    assert "evil" not in page and "Made here" in page and "by me" in page


def test_faithful_translations_in_templates(site):
    site.write("index.rst", "Title\n=====\n")
    site.write_catalog("sphinx", {"Made here": "여기서 만듦", "by %(author)s": "%(author)s 지음"})
    page = site.page(language="ko")
    assert 'title="여기서 만듦">여기서 만듦</p>' in page and "me 지음" in page


def test_fuzz(site):
    """Random pieces of markup, in one page for each message: nothing gets through."""
    random.seed(20)
    pieces = [*REST_ATTACKS.values(), *MARKDOWN_ATTACKS.values(), "한국어", "<img src=x>", "<!--"]
    pieces += ["\\n\\n", "\\t", "\\\\", "&lt;script&gt;", *"` * | _ : % $$ --> ``code``".split()]
    messages, pages = {}, {"rst": [], "md": []}
    for number in range(150):
        message = f"Message number {number} here."
        messages[message] = "".join(random.choices(pieces, k=random.randint(1, 6)))
        pages["rst" if number % 2 else "md"].append(message)
    site.write("index.rst", "Title\n=====\n\n.. toctree::\n\n   md\n   rst\n")
    site.write("rst.rst", "Title\n=====\n\n" + "\n\n".join(pages["rst"]) + "\n")
    site.write("md.md", "# Title\n\n" + "\n\n".join(pages["md"]) + "\n")
    for page in ("rst", "md"):
        site.write_catalog(page, {m: messages[m] for m in pages[page]})
    site.build(language="ko")
    for page in ("rst", "md"):
        soup = BeautifulSoup((site.root / "out" / f"{page}.html").read_text(), "html.parser")
        body = soup.select_one("[role=main]")
        assert body.find_all(["script", "img", "b"]) == []
        assert {a["href"] for a in body.find_all("a", href=True)} <= {"#title"}
        assert "the secret" not in soup.get_text()
        assert "number" in body.get_text(), "refused messages are shown in English"
