"""An unknown address gets a page with links, wherever the site is mounted."""

import shutil

import pytest

from tools.project.languages import LANGUAGES
from tools.project.published import Site
from tools.render.root_files import write_root_files


@pytest.fixture
def page(browser):
    """A page of the browser, in which a dead link is not a fault."""
    with browser.new_page() as page:
        yield page


def offered(page):
    """Return the targets of the visible links to the page itself, when all are known."""
    page.wait_for_load_state("networkidle")
    links = page.locator(".same-page:visible").all()
    return [link.get_attribute("href") for link in links]


def test_the_answer_says_so_in_the_readers_language_first(page, address):
    assert page.goto(f"{address}/ko/tutorial/none.html").status == 404
    assert offered(page) == []
    links = [x.get_attribute("href") for x in page.get_by_role("link").all()]
    assert {f"/{language.url}/index.html" for language in LANGUAGES} < set(links)
    assert page.locator("section").first.get_attribute("lang") == "ko"
    page.get_by_role("link", name="검색").click()
    page.wait_for_url(f"{address}/ko/search.html")


@pytest.mark.parametrize(
    "wrong", ["kr/tutorial/basics.html", "zh-CN/tutorial/basics.html", "tutorial/basics.html"]
)
def test_a_page_in_a_language_that_is_none_is_found_in_all(page, address, wrong):
    page.goto(f"{address}/{wrong}#one-api-many-libraries")
    expected = [f"/{x.url}/tutorial/basics.html#one-api-many-libraries" for x in LANGUAGES]
    assert offered(page) == expected


def test_without_javascript_there_are_links(browser, address):
    with browser.new_page(java_script_enabled=False) as page:
        page.goto(f"{address}/ko/tutorial/none.html")
        page.locator("section[lang=zh-CN] a", has_text="首页").click()
        page.wait_for_url(f"{address}/zh-cn/index.html")


def test_below_a_path(page, serve, tmp_path):
    """As a project's site on GitHub Pages; and a page that one language alone has."""
    site = tmp_path / "project"
    (site / "en/deep").mkdir(parents=True)
    moved = {"old/page": "deep/page"}
    write_root_files(site, Site("https://example.org/project/", "", "main", moved))
    shutil.copyfile(site / "404.html", tmp_path / "404.html")
    (site / "en/deep/page.html").write_text("<p>here</p>")
    page.goto(f"{serve(tmp_path)}/project/ko/deep/page.html")
    assert offered(page) == ["/project/en/deep/page.html"]
    assert page.locator("section").first.get_attribute("lang") == "ko"
    page.locator(".same-page:visible").click()
    page.get_by_text("here").wait_for()
    page.goto(f"{page.url.partition('/en/')[0]}/en/old/page.html")
    page.get_by_text("here").wait_for()
