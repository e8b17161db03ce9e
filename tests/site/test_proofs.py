"""The page "What is verified": it has all listings, in every language, on any screen."""

import json

from bs4 import BeautifulSoup
from test_pages import PAGES

from tools.project.paths import SITE

PAGE = "verified.html"


def records():
    found = {}
    for listing in json.loads((SITE / "provenance.json").read_text())["listings"]:
        found.setdefault(f"{listing['page']}.html", []).append(listing)
    return found


def parse(path):
    return BeautifulSoup(path.read_text(), "html.parser")


def test_every_listing_of_every_page_has_a_record(language):
    known, count = records(), 0
    for name in PAGES:
        soup = parse(SITE / language.url / name)
        boxes = [tag.find_parent(id=True) for tag in soup.find_all("pre")]
        expected = [f"code-{x['number']}" for x in known.get(name, [])]
        assert [box["id"] for box in boxes] == expected, name
        count += len(expected)
    assert count > 200 and count == sum(map(len, known.values()))


def test_every_record_says_what_executed_it():
    for listing in [x for listings in records().values() for x in listings]:
        assert listing["runs"] or listing["not_executed"]
        assert listing["lines"][0] <= listing["lines"][1] and len(listing["sha256"]) == 64


def test_every_record_is_a_row_that_leads_to_its_listing(language):
    rows = parse(SITE / language.url / PAGE).select(".code-provenance tbody tr")
    targets = [row.find("a")["href"] for row in rows]
    expected = [
        f"{'' if name == PAGE else name}#code-{x['number']}"
        for name, listings in records().items()
        for x in listings
    ]
    assert sorted(targets) == sorted(expected)
    said = 0
    for row in rows:
        source, *runs = row.find_all("td")[1:]
        assert source.find("a")["href"].startswith("https://")
        assert all(cell.get_text().strip() for cell in runs)
        said += sum(int(cell.get("rowspan", 1)) for cell in runs)
    assert said == len(rows), "each row has its runs"


def test_what_was_not_executed_is_marked_and_listed(language):
    marked = {
        name: len(parse(SITE / language.url / name).select(".not-executed")) for name in PAGES
    }
    listed = parse(SITE / language.url / PAGE).select(".code-provenance li")
    assert sum(marked.values()) == len(listed) >= 1
    for item in listed:
        assert marked[item.find("a")["href"].partition("#")[0]]
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
    page.evaluate(axe)
    found = page.evaluate("async () => (await axe.run('.code-provenance')).violations")
    assert found == []


def test_the_table_is_not_in_the_search_index(language):
    index = (SITE / language.url / "search-index.js").read_text()
    assert "step_4_one_rank.py" not in index and "provenance.json" in index
