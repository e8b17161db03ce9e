"""Each check of the rendered site finds its fault.

The check reads the whole site, so all faults are in one copy of it, each in a page of its own.
"""

import shutil

import pytest

from tools.check import site as check
from tools.project.errors import BuildError
from tools.project.paths import RENDERED, ROOT
from tools.project.published import PUBLISHED
from tools.translate import check as catalog_check

CODE = "<p><code>**kwargs {{ `x` }}</code></p></article>"
MORE = "<pre>more code</pre></article>"
FAULTS = {
    "lang": ('lang="ko"', 'lang="en"', "lang is 'en'"),
    "anchor": ('<section id="', '<section id="other-', "anchors of its headings differ"),
    "link": ('href="../index.html', 'href="../indexx.html', "leads nowhere"),
    "fragment": ('href="#furo-main-content"', 'href="#nothing"', "leads to no heading"),
    "external": ("</article>", '<img src="https://example.org/x.png"></article>', "loads https"),
    "path": ("</article>", f"<p>{ROOT}</p></article>", "shows the path of the machine"),
    "listing": ("</article>", MORE, "a listing or an output differs"),
    "raw": ("</article>", MORE, "listing has no provenance"),
}
# Source markup, as a reader would see it.
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
FAULTS |= {
    markup: ("</article>", f"<p>Text\n{text} text</p></article>", f"shows the markup {markup!r}")
    for markup, text in LEAKED.items()
}
PAGES = sorted(path.relative_to(RENDERED).as_posix() for path in RENDERED.glob("ko/*/*.html"))
PAGES = [page for page in PAGES if page.removeprefix("ko/") not in PUBLISHED.moved_files]
PLACES = dict(zip(FAULTS, PAGES, strict=False))
OF_ONE_LANGUAGE = PAGES[-1].removeprefix("ko/")


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    site = tmp_path_factory.mktemp("site") / "site"
    shutil.copytree(RENDERED, site)

    def replace(page, old, new):
        text = (site / page).read_text()
        assert old in text
        (site / page).write_text(text.replace(old, new, 1))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "RENDERED", site)
        patch.setattr(catalog_check, "check", lambda: 0)
        replace(PAGES[0], "</article>", CODE)
        check.check()  # It has no findings on the site as it is, and on markup in code.
        for name, (old, new, _) in FAULTS.items():
            replace(PLACES[name], old, new)
        replace("index.html", 'href="ko/index.html', 'href="kr/index.html')
        (site / "zh-cn" / OF_ONE_LANGUAGE).unlink()
        with pytest.raises(BuildError) as caught:
            check.check()
    return str(caught.value).splitlines()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_its_page_is_named(findings, name):
    expected = FAULTS[name][2]
    assert [x for x in findings if x.startswith(f"{PLACES[name]}: ") and expected in x]


def test_a_page_that_one_language_lacks(findings):
    assert f"zh-cn/{OF_ONE_LANGUAGE}: not in every language" in findings


def test_the_start_page_is_checked_too(findings):
    assert "index.html: kr/index.html leads nowhere" in findings
