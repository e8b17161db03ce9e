"""Readers change the language on any page, from a server and a disk."""

import pytest

from tools.project.languages import LANGUAGES
from tools.project.paths import SITE

SWITCHER = "nav.languages"
PAGE = "tutorial/step-1-subclass-backend.html"
ANCHOR = "return-a-work"


@pytest.mark.parametrize("place", [f"{PAGE}#{ANCHOR}", "index.html", "search.html?q=gloo"])
def test_the_switcher_keeps_the_place(visit, place):
    base = SITE.as_uri()
    page = visit(f"{base}/{LANGUAGES[-1].url}/{place}")
    for language in LANGUAGES:
        page.locator(f"{SWITCHER} a", has_text=language.name).click()
        page.wait_for_url(f"{base}/{language.url}/{place}")
        assert page.locator("html").get_attribute("lang") == language.html
        current = page.locator(f"{SWITCHER} [aria-current]").all_inner_texts()
        assert current == [language.name]


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


def test_the_start_page_remembers_a_choice(visit, base):
    page = visit(f"{base}/index.html", locale="ko-KR")
    page.wait_for_url(f"{base}/ko/index.html")
    page.locator(f"{SWITCHER} a", has_text="简体中文").click()
    page.wait_for_url(f"{base}/zh-cn/index.html")
    page.goto(f"{base}/index.html")
    page.wait_for_url(f"{base}/zh-cn/index.html")
