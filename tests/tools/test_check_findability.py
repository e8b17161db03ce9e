"""Each check for search engines and other sites finds its fault."""

import re
import shutil

import pytest

from tools.check import findability
from tools.check import site as check
from tools.check.page_facts import facts_of_pages
from tools.project.errors import BuildError
from tools.project.paths import RENDERED
from tools.project.published import PUBLISHED
from tools.translate import check as catalog_check

PAGE = "ko/tutorial/basics.html"
URL = re.escape(PUBLISHED.url)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of the site; each test restores what it changes."""
    folder = tmp_path_factory.mktemp("site") / "site"
    shutil.copytree(RENDERED, folder)
    return folder


class Edits:
    """Return a function that changes files of the site and returns the findings."""

    def __init__(self, folder):
        self.folder, self.originals = folder, {}

    def __call__(self, name, old, new):
        self.write(name, old, new)
        return self.find()

    def write(self, name, old, new):
        path = self.folder / name
        text = path.read_text() if path.exists() else ""
        self.originals[path] = text
        changed = re.sub(old, lambda match: new, text, count=1)
        assert changed != text
        path.write_text(changed)

    def find(self):
        pages = check._pages(check.SOURCE_LANGUAGE)
        return findability.findings(self.folder, pages, facts_of_pages(self.folder))

    def undo(self):
        for path, text in self.originals.items():
            path.write_text(text) if text else path.unlink()


@pytest.fixture
def edit(folder):
    edits = Edits(folder)
    yield edits
    edits.undo()


LEFT_OUT = ["operations", "overview"]


@pytest.fixture(autouse=True)
def few_pages(folder, monkeypatch):
    monkeypatch.setattr(check, "RENDERED", folder)
    for page in folder.rglob("*.html"):  # The check reads all files.
        if page.parent.name in LEFT_OUT:
            page.unlink()


def test_the_site_as_it_is_passes(edit):
    assert edit("ko/index.html", "</body>", "<!-- the same --></body>") == []


CANONICAL = rf'<link rel="canonical" href="{URL}ko/tutorial/basics.html">'
ENGLISH = rf'<link rel="alternate" hreflang="en" href="{URL}en/tutorial/basics.html">'


@pytest.mark.parametrize(
    "old, new, expected",
    [
        (CANONICAL, "", "canonical links are []"),
        (
            "</title>",
            f'</title><link rel="canonical" href="{PUBLISHED.url}">',
            "canonical links are [",
        ),
        (f"{URL}ko/tutorial/basics.html", "https://example.org/", "canonical links are ["),
        (ENGLISH, "", "there must be one link to each language"),
        ('hreflang="x-default"', 'hreflang="fr"', "there must be one link to each language"),
        (r'<meta name="description" content="[^"]*">', "", "exactly one description"),
        (
            r'name="description" content="[^"]*"',
            'name="description" content=""',
            "exactly one description",
        ),
        (r'<meta property="og:title"[^>]*>', "", "one of each: title"),
        ('property="og:url" content="', 'property="og:url" content="x', "get another address"),
        ("card-ko.png", "card-xx.png", "card-xx.png is not an image of 1200x630"),
    ],
    ids=[
        "canonical",
        "two",
        "elsewhere",
        "alternate",
        "default",
        "description",
        "empty",
        "preview",
        "address",
        "card",
    ],
)
def test_a_fault_of_a_page_is_found(edit, old, new, expected):
    [finding] = edit(PAGE, old, new)
    assert finding.startswith(f"{PAGE}: ") and expected in finding


def test_two_pages_with_one_description(edit, folder):
    other = (folder / "ko/tutorial/next-steps.html").read_text()
    same = re.search(r'<meta name="description"[^>]*>', other)[0]
    [finding] = edit(PAGE, r'<meta name="description"[^>]*>', same)
    assert finding.startswith("ko: 2 pages share the description")


def test_a_card_of_another_size(edit, folder):
    (folder / "card-small.png").write_bytes((folder / "card-ko.png").read_bytes()[:16] + bytes(8))
    [finding] = edit(PAGE, "card-ko.png", "card-small.png")
    assert finding.endswith("card-small.png is not an image of 1200x630")


@pytest.mark.parametrize(
    "name, old, new, expected",
    [
        ("index.html", 'rel="canonical"', 'rel="author"', "index.html: canonical"),
        ("404.html", "/ko/search.html", "ko/search.html", "404.html: ko/search.html leads"),
        ("404.html", "/ko/search.html", "/kr/search.html", "404.html: /kr/search.html leads"),
        ("robots.txt", "Sitemap: ", "# ", "robots.txt: does not name"),
        ("sitemap.xml", "/ko/", "/kr/", "sitemap.xml: does not name"),
    ],
)
def test_a_fault_of_another_file_is_found(edit, name, old, new, expected):
    [finding] = edit(name, old, new)
    assert expected in finding


def test_the_whole_check_includes_it(edit, monkeypatch):
    monkeypatch.setattr(catalog_check, "check", lambda: 0)
    monkeypatch.setattr(check, "_check_pages", lambda pages, facts: [])
    edit("robots.txt", "Sitemap: ", "# ")
    with pytest.raises(BuildError, match="robots.txt: does not name the sitemap"):
        check.check()
