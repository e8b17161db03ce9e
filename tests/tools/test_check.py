"""Each check of the rendered site finds its fault."""

import shutil

import pytest

from tools.check import site as check
from tools.project.errors import BuildError
from tools.project.paths import RENDERED, ROOT
from tools.translate import check as catalog_check

PAGE = "ko/tutorial/basics.html"


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    shutil.copytree(RENDERED, folder)
    monkeypatch.setattr(check, "RENDERED", folder)
    monkeypatch.setattr(catalog_check, "check", lambda: 0)
    return folder


def test_the_site_as_it_is_passes(site):
    check.check()


def replace(site, page, old, new):
    path = site / page
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ('lang="ko"', 'lang="en"', "lang is 'en'"),
        ('<section id="', '<section id="other-', "anchors of its headings differ"),
        ('href="../index.html', 'href="../indexx.html', "leads nowhere"),
        ('href="#furo-main-content"', 'href="#nothing"', "leads to no heading"),
        ("</article>", '<img src="https://example.org/x.png"></article>', "loads https"),
        ("</article>", '<span class="problematic">`x</span></article>', "could not be parsed"),
        ("</article>", f"<p>{ROOT}</p></article>", "shows the path of the machine"),
        ("</article>", "<pre>more code</pre></article>", "a listing or an output"),
        ("</article>", "<pre>more code</pre></article>", "listing has no provenance"),
    ],
    ids=["lang", "anchor", "link", "fragment", "external", "markup", "path", "listing", "raw"],
)
def test_a_fault_is_found_and_its_page_is_named(site, old, new, expected):
    replace(site, PAGE, old, new)
    with pytest.raises(BuildError) as caught:
        check.check()
    [finding] = [line for line in str(caught.value).splitlines() if expected in line]
    assert finding.startswith(f"{PAGE}: ")


LEAKED = {
    "`": "``code``",
    "**": "**strong**",
    "](": "[text](page.md)",
    ":doc:": ":doc:`page`",
    "{doc}`": "{doc}`page`",
    ".. ": ".. note:: text",
    ":::": ":::{note}",
    "\\ ": "a\\ b",
    "{{": "{{ name }}",
    "%(name)": "%(name)s",
    "${": "${name}",
    "&lt;": "a &amp;lt; b",
}


def test_markup_that_a_reader_sees_is_found(site):
    pages = (PAGE, PAGE.replace("ko/", "en/"))
    paragraphs = "".join(f"<p>Text\n{leaked} text</p>" for leaked in LEAKED.values())
    for page in pages:
        replace(site, page, "</article>", f"{paragraphs}</article>")
    with pytest.raises(BuildError) as caught:
        check.check()
    for page in pages:
        for markup in LEAKED:
            assert f"{page}: shows the markup {markup!r}" in str(caught.value)


def test_markup_in_code_is_code(site):
    replace(site, PAGE, "</article>", "<p><code>**kwargs {{ `x` }}</code></p></article>")
    check.check()


def test_a_page_that_one_language_lacks(site):
    (site / "zh-cn/tutorial/basics.html").unlink()
    with pytest.raises(BuildError, match="tutorial/basics.html: not in every"):
        check.check()


def test_the_start_page_is_checked_too(site):
    replace(site, "index.html", 'href="ko/index.html', 'href="kr/index.html')
    with pytest.raises(BuildError, match="index.html: kr/index.html leads nowhere"):
        check.check()
