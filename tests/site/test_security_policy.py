"""A strict Content-Security-Policy, and the site without scripts.

All tests of the site load its pages with this policy, and fail if a page violates it.
"""

import re
import urllib.request

import pytest
from bs4 import BeautifulSoup

from tools.project.languages import LANGUAGES
from tools.project.paths import SITE

POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'"
TUTORIAL = "tutorial/step-1-subclass-backend.html"
# Notes the colour of the page in every frame that is painted.
PAINTED = """
window.painted = new Set();
const note = () => {
  if (document.body) painted.add(getComputedStyle(document.body).backgroundColor);
  requestAnimationFrame(note);
};
requestAnimationFrame(note);
"""


@pytest.mark.parametrize("path", ["index.html", "ko/index.html", "en/_static/site.css"])
def test_the_server_sends_it(address, path):
    with urllib.request.urlopen(f"{address}/{path}", timeout=10) as answer:
        assert answer.headers.get_all("Content-Security-Policy") == [POLICY]


def test_no_page_holds_a_script():
    found = []
    for path in SITE.rglob("*.html"):
        for tag in BeautifulSoup(path.read_text(), "html.parser").find_all():
            handlers = [name for name in tag.attrs if name.startswith("on")]
            addresses = [str(value) for value in tag.attrs.values()]
            if (
                handlers
                or (tag.name == "script" and not tag.get("src"))
                or any(re.match(r"\s*(javascript|data):", x, re.I) for x in addresses)
            ):
                found.append((path.relative_to(SITE), str(tag)[:100]))
    assert found == []


@pytest.mark.parametrize("chosen, system", [("dark", "light"), ("light", "dark")])
def test_the_chosen_theme_is_there_from_the_first_frame(visit, address, chosen, system):
    page = visit(f"{address}/en/{TUTORIAL}", color_scheme=chosen)
    expected = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.evaluate(f"localStorage.setItem('theme', '{chosen}')")
    page.emulate_media(color_scheme=system)
    page.add_init_script(PAINTED)

    def late(route):
        page.wait_for_timeout(300)
        route.continue_()

    page.route("**/theme.js*", late)
    page.reload()
    page.wait_for_function("painted.size > 0")
    assert page.evaluate("[...painted]") == [expected]


def test_the_theme_can_be_changed(visit, address):
    page = visit(f"{address}/ko/{TUTORIAL}", color_scheme="light")
    page.locator(".theme-toggle-content button").click()
    assert page.locator("body").get_attribute("data-theme") == "dark"
    page.reload()
    assert page.locator("body").get_attribute("data-theme") == "dark"


@pytest.mark.parametrize("where", ["server", "disk"])
def test_reading_needs_no_scripts(visit, address, language, where):
    base = address if where == "server" else SITE.as_uri()
    wide = {"width": 1440, "height": 900}
    page = visit(f"{base}/index.html", java_script_enabled=False, viewport=wide)
    page.locator("main a", has_text=language.name).click()
    page.wait_for_url(f"{base}/{language.url}/index.html")
    page.locator(f".sidebar-tree a[href='{TUTORIAL}']").click()
    page.wait_for_url(f"{base}/{language.url}/{TUTORIAL}")
    for part in ("h1", ".sidebar-search", ".toc-tree li li a", "figure svg", "pre"):
        assert page.locator(part).first.is_visible(), part
    assert not page.locator(".theme-toggle-content button").is_visible()
    other = next(x for x in LANGUAGES if x != language)
    page.locator("nav.languages a", has_text=other.name).click()
    page.wait_for_url(f"{base}/{other.url}/{TUTORIAL}")
    page.locator("a.next-page").click()
    page.wait_for_url(re.compile(f"{other.url}/(?!{TUTORIAL})"))
