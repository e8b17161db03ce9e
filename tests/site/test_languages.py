"""Readers change the language on any page, with mouse and keyboard, from a server and a disk."""

import pytest

from tools.project.languages import LANGUAGES
from tools.project.paths import SITE

SWITCHER = "nav.languages"
PAGE = "tutorial/step-1-subclass-backend.html"
ANCHOR = "return-a-work"


def bases(address):
    return {"server": address, "disk": SITE.as_uri()}


@pytest.mark.parametrize("where", ["server", "disk"])
@pytest.mark.parametrize("name", [PAGE, "index.html", "search.html"])
def test_the_switcher_keeps_the_page(visit, address, where, name):
    base = bases(address)[where]
    page = visit(f"{base}/{LANGUAGES[-1].url}/{name}")
    for language in LANGUAGES:
        page.locator(f"{SWITCHER} a", has_text=language.name).click()
        page.wait_for_url(f"{base}/{language.url}/{name}")
        assert page.locator("html").get_attribute("lang") == language.html
        current = page.locator(f"{SWITCHER} [aria-current]").all_inner_texts()
        assert current == [language.name]


def test_the_switcher_keeps_the_heading(visit, address):
    page = visit(f"{address}/en/{PAGE}#{ANCHOR}")
    page.locator(f"{SWITCHER} a", has_text="한국어").click()
    page.wait_for_url(f"{address}/ko/{PAGE}#{ANCHOR}")
    assert page.locator(f"section#{ANCHOR} > h2").is_visible()


def test_the_switcher_works_by_keyboard(visit, address):
    page = visit(f"{address}/en/{PAGE}", reduced_motion="reduce")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # The first link skips to the content.
    for _ in LANGUAGES:
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.language") == "zh-cn":
            break
    page.keyboard.press("Enter")
    page.wait_for_url(f"{address}/zh-cn/{PAGE}#*")


def test_the_switcher_works_without_javascript(visit, address):
    page = visit(f"{address}/en/{PAGE}", java_script_enabled=False)
    page.locator(f"{SWITCHER} a", has_text="한국어").click()
    page.wait_for_url(f"{address}/ko/{PAGE}")


@pytest.mark.parametrize(
    "locale, expected",
    [
        ("en-US", "en"),
        ("ko-KR", "ko"),
        ("ko", "ko"),
        ("zh-CN", "zh-cn"),
        ("zh-Hans-SG", "zh-cn"),
        ("fr-FR", "en"),
    ],
)
def test_the_start_page_picks_the_readers_language(visit, address, locale, expected):
    page = visit(f"{address}/", locale=locale)
    page.wait_for_url(f"{address}/{expected}/index.html")


@pytest.mark.parametrize("where", ["server", "disk"])
def test_the_start_page_remembers_a_choice(visit, address, where):
    base = bases(address)[where]
    page = visit(f"{base}/index.html", locale="ko-KR")
    page.wait_for_url(f"{base}/ko/index.html")
    page.locator(f"{SWITCHER} a", has_text="简体中文").click()
    page.wait_for_url(f"{base}/zh-cn/index.html")
    page.goto(f"{base}/index.html")
    page.wait_for_url(f"{base}/zh-cn/index.html")


def test_the_start_page_offers_all_languages_without_javascript(visit, address):
    page = visit(f"{address}/", java_script_enabled=False, locale="ko-KR")
    assert page.locator("main a").all_inner_texts() == [x.name for x in LANGUAGES]
    page.get_by_text("한국어").click()
    page.wait_for_url(f"{address}/ko/index.html")


def test_headings_have_the_same_anchors_in_every_language(visit, address):
    page = visit(f"{address}/en/{PAGE}")
    anchors = []
    for language in LANGUAGES:
        page.goto(f"{address}/{language.url}/{PAGE}")
        anchors.append(page.eval_on_selector_all("section", "all => all.map(x => x.id)"))
    assert anchors[0] == anchors[1] == anchors[2]
    assert ANCHOR in anchors[0]
