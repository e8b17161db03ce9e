"""A strict Content-Security-Policy, and the site without scripts.

All tests of the site load its pages with this policy, and fail if a page violates it.
"""

import re
import urllib.request

import pytest

from tools.project.paths import SITE

POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'"
TUTORIAL = "tutorial/step-1-subclass-backend.html"
# Elements with a script of their own, handlers of events, and addresses that are programs.
SCRIPT = re.compile(
    r"<script(?![^>]*\ssrc=)[^>]*>|<[a-z][^<>]*\s(?:on\w+=|[\w:-]+=[\"']?\s*(?:javascript|data):)",
    re.I,
)
# Notes the colour of the page in every frame that is painted.
PAINTED = """
window.painted = new Set();
const note = () => {
  if (document.body) painted.add(getComputedStyle(document.body).backgroundColor);
  requestAnimationFrame(note);
};
requestAnimationFrame(note);
"""


def test_the_server_sends_it(address):
    with urllib.request.urlopen(f"{address}/ko/index.html", timeout=600) as answer:
        assert answer.headers.get_all("Content-Security-Policy") == [POLICY]


def test_no_page_holds_a_script():
    pages = {path.relative_to(SITE): path.read_text() for path in SITE.rglob("*.html")}
    assert len(pages) > 30
    tags = [(name, tag[0]) for name, page in pages.items() for tag in SCRIPT.finditer(page)]
    assert tags == []


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


def test_reading_needs_no_scripts(visit, base):
    wide = {"width": 1440, "height": 900}
    page = visit(f"{base}/index.html", java_script_enabled=False, viewport=wide)
    page.locator("main a", has_text="한국어").click()
    page.wait_for_url(f"{base}/ko/index.html")
    page.locator(".sidebar-tree a[href='tutorial/index.html']").click()
    page.locator(f".sidebar-tree a[href='{TUTORIAL.rpartition('/')[2]}']").click()
    page.wait_for_url(f"{base}/ko/{TUTORIAL}")
    for part in ("h1", ".sidebar-search", ".toc-tree li li a", "figure svg", "pre"):
        assert page.locator(part).first.is_visible(), part
    assert not page.locator(".theme-toggle-content button").is_visible()
    assert page.locator(".copy-button").count() == 0
    page.locator("nav.languages a", has_text="简体中文").click()
    page.wait_for_url(f"{base}/zh-cn/{TUTORIAL}")
    page.locator("a.next-page").click()
    page.wait_for_url(re.compile(f"zh-cn/(?!{TUTORIAL})"))
