"""Each check for search engines and other sites finds its fault.

All faults are in one copy of the site, each in a page or a file of its own.
"""

import re
import shutil

import pytest

from tools.check import site as check
from tools.project.errors import BuildError
from tools.project.paths import RENDERED
from tools.project.published import PUBLISHED
from tools.translate import check as catalog_check

URL = PUBLISHED.url
DESCRIPTION = r'<meta name="description" content="([^"]*)">'
# Of a page: the text, its replacement, and what the check says. PAGE is the address of the page.
OF_PAGES = {
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
# Of other files.
OF_FILES = [
    ("index.html", 'rel="canonical"', 'rel="author"', "index.html: canonical"),
    ("404.html", "/ko/search.html", "ko/search.html", "404.html: ko/search.html leads"),
    ("404.html", "/en/search.html", "/kr/search.html", "404.html: /kr/search.html leads"),
    ("robots.txt", "Sitemap: ", "# ", "robots.txt: does not name"),
    ("sitemap.xml", "/ko/", "/kr/", "sitemap.xml: does not name"),
]
PAGES = sorted(path.relative_to(RENDERED).as_posix() for path in RENDERED.glob("ko/*/*.html"))
PAGES = [page for page in PAGES if page.removeprefix("ko/") not in PUBLISHED.moved_files]
PLACES = dict(zip(OF_PAGES, PAGES, strict=False))
ALIKE = PAGES[-2:]  # with the same description


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

    for kind, (old, new, _) in OF_PAGES.items():
        replace(PLACES[kind], old, new)
    for name, old, new, _ in OF_FILES:
        replace(name, old, new)
    replace(ALIKE[0], DESCRIPTION, re.search(DESCRIPTION, (site / ALIKE[1]).read_text())[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "RENDERED", site)
        patch.setattr(check, "_check_pages", lambda pages, facts: [])
        patch.setattr(catalog_check, "check", lambda: 0)
        with pytest.raises(BuildError) as caught:
            check.check()
    return str(caught.value).splitlines()[1:]


@pytest.mark.parametrize("kind", OF_PAGES)
def test_a_fault_of_a_page_is_found(findings, kind):
    [finding] = [x for x in findings if x.startswith(f"{PLACES[kind]}: ")]
    assert OF_PAGES[kind][2] in finding


@pytest.mark.parametrize("expected", [expected for *_, expected in OF_FILES])
def test_a_fault_of_another_file_is_found(findings, expected):
    assert len([x for x in findings if x.startswith(expected)]) == 1


def test_two_pages_with_one_description_and_nothing_else(findings):
    assert [x for x in findings if x.startswith("ko: 2 pages share the description")]
    assert len(findings) == len(OF_PAGES) + len(OF_FILES) + 1
