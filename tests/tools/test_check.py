"""Each check of the rendered site finds its fault.

The checks read the whole site, so all faults are in one copy of it, each in a page or a file of
its own. What search engines and other sites read is looked at only in pages without other faults.
"""

import re
import shutil

import pytest

from tools.check import site as check
from tools.execute import run_seconds
from tools.project.errors import BuildError
from tools.project.languages import LANGUAGES
from tools.project.paths import GALLERY, RENDERED, ROOT
from tools.project.published import ADDRESSES_FILE, PUBLISHED
from tools.translate import check as catalog_check

URL = PUBLISHED.url
DESCRIPTION = r'<meta name="description" content="([^"]*)">'
# Of a page: the text, its replacement, and what the check says. PAGE is the address of the page.
FOR_SEARCH_ENGINES = {
    "canonical": (r'<link rel="canonical" href="[^"]*">', "", "canonical links are []"),
    "two": ("</title>", f'</title><link rel="canonical" href="{URL}">', "canonical links are ["),
    "elsewhere": (f"{URL}PAGE", "https://example.org/", "canonical links are ["),
    "alternate": (f'<link rel="alternate" hreflang="en" href="{URL}[^"]*">', "", "each language"),
    "default": ('hreflang="x-default"', 'hreflang="fr"', "one link to each language"),
    "description": (DESCRIPTION, "", "exactly one description"),
    "empty": (DESCRIPTION, '<meta name="description" content="">', "exactly one description"),
    "preview": (r'<meta property="og:title"[^>]*>', "", "one of each: title"),
    "address": ('property="og:url" content="', 'property="og:url" content="x', "another address"),
    "card": ("card-ko.png", "card-xx.png", "card-xx.png is not an image of 1200x630"),
    "size": ("card-ko.png", "card-small.png", "card-small.png is not an image of 1200x630"),
}
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
PLACES = dict(zip([*FOR_SEARCH_ENGINES, *FAULTS], PAGES, strict=False))
ALIKE = PAGES[-2:]  # with the same description
OF_ONE_LANGUAGE = PAGES[-1].removeprefix("ko/")
# Of other files.
OF_FILES = [
    ("index.html", 'rel="canonical"', 'rel="author"', "index.html: canonical"),
    ("404.html", "/ko/search.html", "ko/search.html", "404.html: ko/search.html leads"),
    ("404.html", "/en/search.html", "/kr/search.html", "404.html: /kr/search.html leads"),
    ("robots.txt", "Sitemap: ", "# ", "robots.txt: does not name"),
    ("sitemap.xml", "/ko/", "/kr/", "sitemap.xml: does not name"),
]


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    site = tmp_path_factory.mktemp("site") / "site"
    shutil.copytree(RENDERED, site)
    (site / "card-small.png").write_bytes((site / "card-ko.png").read_bytes()[:16] + bytes(8))

    def replace(name, old, new):
        text = (site / name).read_text()
        changed = re.sub(old.replace("PAGE", name), lambda match: new, text, count=1)
        assert changed != text, name
        (site / name).write_text(changed)

    def found():
        with pytest.raises(BuildError) as caught:
            check.check()
        return str(caught.value).splitlines()[1:]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "RENDERED", site)
        patch.setattr(catalog_check, "check", lambda: 0)
        replace(PAGES[-3], "</article>", CODE)
        check.check()  # It has no findings on the site as it is, and on markup in code.
        for name, (old, new, _) in FOR_SEARCH_ENGINES.items():
            replace(PLACES[name], old, new)
        for name, old, new, _ in OF_FILES:
            replace(name, old, new)
        replace(ALIKE[0], DESCRIPTION, re.search(DESCRIPTION, (site / ALIKE[1]).read_text())[0])
        for_search_engines = found()
        for name, (old, new, _) in FAULTS.items():
            replace(PLACES[name], old, new)
        replace("index.html", 'href="ko/index.html', 'href="kr/index.html')
        (site / "zh-cn" / OF_ONE_LANGUAGE).unlink()
        [wheel] = (site / "packages").glob("c10d_frame-*.whl")
        wheel.unlink()
        patch.setattr(check, "ADDRESSES_FILE", tmp_path_factory.mktemp("addresses") / "known.txt")
        known = [*ADDRESSES_FILE.read_text().split(), "tutorial/gone"]
        check.ADDRESSES_FILE.write_text(
            "\n".join(x for x in known if x != OF_ONE_LANGUAGE.removesuffix(".html"))
        )
        for language in LANGUAGES:
            old = sorted(PUBLISHED.moved_files)[-1]
            shutil.copy(site / language.url / old, site / language.url / "tutorial/old.html")
        patch.setitem(PUBLISHED.moved, "tutorial/old", "tutorial/gone")
        patch.setattr(run_seconds, "samples", lambda: [GALLERY / "tutorial" / "untimed.py"])
        return for_search_engines + found()


@pytest.mark.parametrize("name", PLACES)
def test_a_fault_is_found_and_its_page_is_named(findings, name):
    expected = (FOR_SEARCH_ENGINES | FAULTS)[name][2]
    assert [x for x in findings if x.startswith(f"{PLACES[name]}: ") and expected in x]


@pytest.mark.parametrize(
    "expected",
    [
        *(expected for *_, expected in OF_FILES),
        "ko: 2 pages share the description",
        f"zh-cn/{OF_ONE_LANGUAGE}: not in every language",
        "index.html: kr/index.html leads nowhere",
        "packages/index.html: c10d_frame-",
        "tutorial/gone: the page has gone; say where its readers go, below [moved] in site.toml: ",
        f"known.txt: lacks the line {OF_ONE_LANGUAGE.removesuffix('.html')}",
        "known.txt: lacks the line tutorial/old",
        "site.toml: tutorial/old moved to tutorial/gone, which is no page",
        "gallery/tutorial/untimed.py: has no time for readers; run `make run-times`",
    ],
)
def test_a_fault_of_another_file_is_found(findings, expected):
    assert len([x for x in findings if x.startswith(expected)]) == 1
