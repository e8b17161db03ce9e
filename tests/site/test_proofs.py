"""The page "What is verified": it has all listings, in every language, on any screen."""

import json
import re

import pytest
from bs4 import BeautifulSoup

from tools.project.paths import SITE

PAGE = "verified.html"
NOT_EXECUTED = re.compile(r'class="[^"]*\bnot-executed\b')


@pytest.fixture
def parsed(language):
    return BeautifulSoup((SITE / language.url / PAGE).read_text(), "html.parser")


def test_every_record_is_a_row_that_leads_to_its_listing(parsed, language):
    rows = parsed.select(".code-provenance tbody tr")
    expected = [
        f"{'' if x['page'] == 'verified' else x['page'] + '.html'}#code-{x['number']}"
        for x in json.loads((SITE / "provenance.json").read_text())["listings"]
    ]
    assert len(expected) > 200
    assert sorted(row.find("a")["href"] for row in rows) == sorted(expected)
    for row in rows:
        assert row.find_all("td")[1].find("a")["href"].startswith("https://")
    place = " ".join(rows[0].find_all("td")[1].get_text().split())
    index = (SITE / language.url / "search-index.js").read_text()
    assert place not in index, "the table fills the results of the search"


def test_what_was_not_executed_is_marked_and_listed(parsed, language):
    folder = SITE / language.url
    pages = {x.relative_to(folder).as_posix(): x.read_text() for x in folder.rglob("*.html")}
    marks = {
        name: len(BeautifulSoup(page, "html.parser").select(".not-executed div.highlight"))
        for name, page in pages.items()
        if NOT_EXECUTED.search(page)
    }
    items = parsed.select(".code-provenance li")
    assert sum(marks.values()) == len(items) >= 1
    for item in items:
        assert marks[item.find("a")["href"].partition("#")[0]]
        if language.gettext != "en" and language.complete:
            assert not item.get_text().isascii()


def test_the_foot_of_every_page_leads_there(visit, address, language):
    page = visit(f"{address}/{language.url}/tutorial/basics.html")
    with page.expect_navigation():
        page.locator(".verified-with a").first.click()
    assert page.url == f"{address}/{language.url}/{PAGE}"
    href = page.locator(".code-provenance a[href$='.json']").get_attribute("href")
    assert page.request.get(f"{address}/{language.url}/{href}").json()["listings"]


def test_the_open_tables_fit_on_a_phone_and_have_no_barrier(visit, address, language, axe):
    page = visit(f"{address}/{language.url}/{PAGE}", viewport={"width": 360, "height": 740})
    page.evaluate("document.querySelectorAll('details').forEach(x => x.open = true)")
    assert page.evaluate("document.scrollingElement.scrollWidth") == 360
    cut_off = page.eval_on_selector_all(
        ".code-provenance td", "all => all.filter(x => x.scrollWidth > x.clientWidth).length"
    )
    assert cut_off == 0
    # The tables are alike, and the rules take long on all of them.
    page.locator("details:nth-of-type(n + 4)").evaluate_all("all => all.map(x => x.remove())")
    page.evaluate(axe)
    violations = page.evaluate("async () => (await axe.run('.code-provenance')).violations")
    assert violations == []
