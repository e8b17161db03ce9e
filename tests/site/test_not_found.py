"""An unknown address gets a page with links, wherever the site is mounted."""

import shutil
import threading

import pytest

from tools.project.languages import LANGUAGES
from tools.project.published import Site
from tools.render.root_files import write_root_files
from tools.serve import make_server

HOMES = [f"{language.url}/index.html" for language in LANGUAGES]


@pytest.fixture
def page(browser):
    """A page of the browser, in which a dead link is not a fault."""
    context = browser.new_context()
    context.set_default_timeout(20_000)
    yield context.new_page()
    context.close()


def offered(page):
    """Return the targets of the visible links to the page itself, when all are known."""
    page.wait_for_load_state("networkidle")
    links = page.locator(".same-page:visible").all()
    return [link.get_attribute("href") for link in links]


def test_the_answer_says_that_there_is_no_page(page, address):
    assert page.goto(f"{address}/ko/tutorial/none.html").status == 404
    assert offered(page) == []
    links = [x.get_attribute("href") for x in page.get_by_role("link").all()]
    assert {f"/{home}" for home in HOMES} < set(links)


def test_the_readers_language_comes_first(page, address):
    page.goto(f"{address}/ko/tutorial/none.html")
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
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/ko/tutorial/none.html")
    page.locator("section[lang=zh-CN] a", has_text="首页").click()
    page.wait_for_url(f"{address}/zh-cn/index.html")
    context.close()


def test_below_a_path(page, tmp_path):
    """As a project's site on GitHub Pages; and a page that one language alone has."""
    site = tmp_path / "project"
    (site / "en/deep").mkdir(parents=True)
    write_root_files(site, Site("https://example.org/project/", "", "main"))
    shutil.copyfile(site / "404.html", tmp_path / "404.html")
    (site / "en/deep/page.html").write_text("<p>here</p>")
    server = make_server(0, tmp_path)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        page.goto(f"http://127.0.0.1:{server.server_port}/project/ko/deep/page.html")
        assert offered(page) == ["/project/en/deep/page.html"]
        assert page.locator("section").first.get_attribute("lang") == "ko"
        page.locator(".same-page:visible").click()
        page.get_by_text("here").wait_for()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
