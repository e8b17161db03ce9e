"""Search: what it finds, and how it is used, in every language."""

import csv
import gzip
import itertools
import math
import random
import re
import sys
import unicodedata
from pathlib import Path

import pytest

from tools.project.paths import SITE
from tools.project.published import PUBLISHED

PAGE = "tutorial/basics.html"
FIELD = ".sidebar-search"
MAIN_FIELD = 'article input[name="q"]'
OPTIONS = '[role="option"]'
STATUS = '[role="status"]'
# Of the queries of these kinds the page must be among so many first results.
SEEN = {"question": 3, "answer": 1}
# Bytes for each page, compressed. A page has 1300 words in Korean, whose index is the largest.
MAXIMAL_INDEX = 3900

# Of each line, every form finds a page that has any other.
FORMS = [
    ["get_rank", "getRank", "get rank", "GET_RANK", "get-rank"],
    ["BackendDummy", "backend dummy", "backend_dummy"],
    ["분산학습", "분산 학습", unicodedata.normalize("NFD", "분산 학습")],
    ["FSDP2", "ＦＳＤＰ２", "fsdp 2"],
    ["集合操作", "集合 操作", "集合，操作"],
    ["gloo 백엔드", "gloo백엔드", "Gloo-백엔드"],
]

with open(Path(__file__).parent / "search_queries.csv", encoding="utf-8") as file:
    QUERIES = list(csv.DictReader(file))

LOADED = """() =>
  Boolean(globalThis.searchIndex && globalThis.SearchEngine && globalThis.searchWords)"""
# The addresses of the results of each query.
ASK = """queries => {
  const engine = SearchEngine.of(searchIndex);
  return queries.map(query => {
    const answer = engine.search(query);
    const results = answer.results(0, answer.count);
    return results.map(result => new URL(result.address, location.href).href);
  });
}"""
# The address and the title of each page.
TITLES = """() => {
  let place = 0;
  return searchIndex.pages.map(([address, , anchors]) => {
    const title = searchIndex.headings[place];
    place += anchors.length;
    return [address, title];
  });
}"""
# The texts of the blocks of each page in which words stand beside each other.
BLOCKS = """pages => pages.map(html => {
  const article = new DOMParser().parseFromString(html, "text/html").querySelector("article");
  article.querySelectorAll(
    ".headerlink, .languages, .page-times, .sample-downloads, .unsearched, details pre"
  ).forEach(tag => tag.remove());
  const blocks = article.querySelectorAll("p, h1, h2, h3, td, th, dt, pre, figcaption, tspan");
  return [...blocks].map(tag => tag.textContent);
})"""


@pytest.fixture
def page(visit, language):
    """The search page of a language on the disk, when the index is loaded."""
    page = visit((SITE / language.url / "search.html").as_uri())
    page.locator(MAIN_FIELD).focus()
    page.wait_for_function(LOADED)
    return page


def search(page, queries):
    """Return a list of pages for each query."""
    prefix = page.url.partition("search.html")[0]
    return [
        [address.removeprefix(prefix).partition(".html")[0] for address in addresses]
        for addresses in page.evaluate(ASK, queries)
    ]


def test_the_queries_find_their_pages(page, language):
    if not language.complete:
        pytest.skip("its queries come with its translation")
    queries = [query for query in QUERIES if query["language"] == language.url]
    assert len(queries) >= 40
    ranks, late = [], []
    answers = search(page, [query["query"] for query in queries])
    for query, pages in zip(queries, answers, strict=True):
        places = [pages.index(x) + 1 for x in query["pages"].split() if x in pages]
        ranks.append(min(places, default=math.inf))
        if ranks[-1] > SEEN.get(query["kind"], sys.maxsize):
            late.append((query["query"], ranks[-1]))
    assert late == []
    reciprocal = sum(1 / rank for rank in ranks) / len(ranks)
    first = ranks.count(1) / len(ranks)
    print(f"mean reciprocal rank {reciprocal:.3f}, right page first {first:.3f}")
    assert reciprocal >= 0.9
    assert first >= 0.83  # lowest in Korean, where "rank" is in titles of two parts


def test_a_title_leads_to_its_page(page):
    titles = page.evaluate(TITLES)
    for (address, _), pages in zip(titles, search(page, [x for _, x in titles]), strict=True):
        assert address.partition(".html")[0] in pages[:2], address


def has_letter(word):
    return any(character.isalnum() for character in word)


def samples_of(blocks, chance):
    """Words, phrases with and without spaces, and parts of words, from the blocks of one page."""
    blocks = [block.split() for block in blocks if has_letter(block)]
    words = [word for block in blocks for word in block if has_letter(word)]
    yield from chance.sample(words, min(3, len(words)))
    for _ in range(3):
        block = chance.choice(blocks)
        start = chance.randrange(len(block))
        phrase = block[start : start + chance.randint(2, 5)]
        if any(map(has_letter, phrase)):
            yield " ".join(phrase)
            yield "".join(phrase)
    runs = re.findall(r"[\uac00-\ud7a3\u4e00-\u9fff]+", " ".join(words))
    for run in chance.choices(runs, k=3 if runs else 0):
        start = chance.randrange(len(run))
        yield run[start : start + chance.randint(1, 6)]


def test_what_stands_on_a_page_finds_the_page(page, language):
    chance = random.Random(20)
    folder = SITE / language.url
    moved = {folder / file for file in PUBLISHED.moved_files}
    paths = sorted(x for x in {*folder.rglob("*.html")} - moved if x.name != "search.html")
    expected, queries = [], []
    blocks_of_pages = page.evaluate(BLOCKS, [path.read_text() for path in paths])
    for path, blocks in zip(paths, blocks_of_pages, strict=True):
        samples = list(samples_of(blocks, chance))
        queries += samples
        expected += [path.relative_to(folder).with_suffix("").as_posix()] * len(samples)
    assert len(queries) > 5 * len(paths)
    missed = [
        (name, query)
        for name, query, pages in zip(expected, queries, search(page, queries), strict=True)
        if name not in pages
    ]
    # Of texts that are mostly signs, there may be one without enough words.
    assert len(missed) <= max(1, len(queries) / 1000), missed


def test_what_stands_on_no_page_finds_none(page):
    assert search(page, ["qqqqqzzzz", "", "???", "뷁뷁뷁", "龘龘龘"]) == [[]] * 5


def test_pages_and_queries_are_folded_by_one_rule(visit):
    """A page with one form is found, and marked, by a query in any other."""
    page = visit("about:blank")
    for name in ("words", "engine"):
        page.add_script_tag(path=SITE / f"en/_static/search-{name}.js")
    for text, query in [pair for forms in FORMS for pair in itertools.product(forms, forms)]:
        exact, results = page.evaluate(
            """([text, query]) => {
                 text = text.normalize("NFC");
                 const other = ["b.html", [["b", "Other", "nothing of it", []]]];
                 const one = ["a.html", [["a", "Title", `x ${text} y`, []]]];
                 const answer = new SearchEngine([one, other]).search(query);
                 return [answer.exact, answer.results(0, 9)];
               }""",
            [text, query],
        )
        assert exact and [x["address"] for x in results] == ["a.html"], (text, query)
        marked = "".join(part for part, matches in results[0]["excerpt"] if matches)
        whole = unicodedata.normalize("NFC", text)
        assert re.sub(r"[\W_]", "", marked) == re.sub(r"[\W_]", "", whole)


def test_the_index_is_small(language):
    index = (SITE / language.url / "search-index.js").read_bytes()
    pages = len(list((SITE / language.url).rglob("*.html"))) - len(PUBLISHED.moved)
    assert len(gzip.compress(index, 9)) < MAXIMAL_INDEX * pages


def test_suggestions_by_keyboard(visit, language):
    """On a disk; the tests below ask a server."""
    page = visit((SITE / language.url / PAGE).as_uri())
    field = page.locator(FIELD)
    assert field.get_attribute("aria-expanded") == "false"
    page.keyboard.press("/")
    assert field.evaluate("x => x === document.activeElement")
    page.keyboard.type("getBackendName")
    options = page.locator(OPTIONS)
    options.first.wait_for()
    assert field.get_attribute("aria-expanded") == "true"
    controlled = page.locator(f"#{field.get_attribute('aria-controls')}")
    assert controlled.get_attribute("role") == "listbox"
    assert "getBackendName" in options.first.locator("mark").all_inner_texts()
    page.locator(STATUS, has_text=re.compile(r"\d")).wait_for(state="attached")

    def active():
        name = field.get_attribute("aria-activedescendant")
        selected = page.locator('[role="option"][aria-selected="true"]')
        assert selected.count() == (1 if name else 0)
        assert not name or selected.get_attribute("id") == name
        return name

    assert active() is None
    page.keyboard.press("ArrowDown")
    first = active()
    page.keyboard.press("ArrowDown")
    assert active() not in (None, first)
    page.keyboard.press("ArrowUp")
    assert active() == first
    page.keyboard.press("ArrowUp")
    assert active() is None
    page.keyboard.press("Escape")
    assert not options.first.is_visible()
    assert field.get_attribute("aria-expanded") == "false"
    assert field.input_value() == "getBackendName"
    page.keyboard.press("ArrowDown")
    options.first.wait_for()
    page.keyboard.press("ArrowDown")
    target = page.locator(f"#{active()}").get_attribute("href")
    assert re.search(r"every-operation\.html#[\w-]+$", target)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url == target
    assert page.locator(f"section#{target.partition('#')[2]}").is_visible()


def test_nothing_found_is_said(visit, address, language):
    page = visit(f"{address}/{language.url}/{PAGE}")
    field = page.locator(FIELD)
    field.fill("qqqqqzzzz")
    text = page.locator(".search-suggestions p")
    text.wait_for()
    page.locator(STATUS, has_text=text.inner_text()).wait_for(state="attached")
    assert field.get_attribute("aria-expanded") == "false"
    assert page.locator(OPTIONS).count() == 0


def test_enter_leads_to_all_results(visit, address, language):
    page = visit(f"{address}/{language.url}/{PAGE}")
    page.keyboard.press("Control+k")
    page.keyboard.type("gloo")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url == f"{address}/{language.url}/search.html?q=gloo"
    results = page.locator(".search-results li")
    results.first.wait_for()
    assert page.locator(MAIN_FIELD).input_value() == "gloo"
    status = page.locator(".search-status").inner_text()
    assert str(results.count()) in status
    if language.gettext != "en" and language.complete:
        assert not status.isascii(), "still in English"
    page.locator(MAIN_FIELD).fill("deadlock")
    page.locator(".search-results mark", has_text="deadlock").first.wait_for()


def test_an_input_method_is_not_disturbed(visit, address):
    page = visit(f"{address}/ko/{PAGE}")
    keyboard = page.context.new_cdp_session(page)
    field = page.locator(FIELD)
    field.focus()
    for text in ["ㅂ", "배", "백", "백에", "백엔", "백엔ㄷ", "백엔드"]:
        selection = {"selectionStart": len(text), "selectionEnd": len(text)}
        keyboard.send("Input.imeSetComposition", {"text": text, **selection})
        assert field.input_value() == text
        if len(text) > 1:
            page.locator(".search-suggestions mark", has_text="백엔").first.wait_for()
    # The keys that choose among an input method's candidates, and commit one.
    for key in ["ArrowDown", "Enter", "Escape"]:
        prevented = field.evaluate(
            """(field, key) => !field.dispatchEvent(new KeyboardEvent("keydown",
                 { key, isComposing: true, bubbles: true, cancelable: true }))""",
            key,
        )
        assert not prevented
    assert field.get_attribute("aria-activedescendant") is None
    assert page.locator(OPTIONS).first.is_visible()
    keyboard.send("Input.insertText", {"text": "백엔드"})
    assert field.input_value() == "백엔드"
    page.keyboard.press("ArrowDown")
    assert field.get_attribute("aria-activedescendant")


def test_a_phone_shows_suggestions_and_results(visit, address, language):
    phone = {"viewport": {"width": 360, "height": 740}, "reduced_motion": "reduce"}
    page = visit(f"{address}/{language.url}/{PAGE}", **phone)
    page.keyboard.press("/")
    page.keyboard.type("init_process_group")
    page.locator(OPTIONS).first.wait_for()
    box = page.locator(".search-suggestions").bounding_box()
    assert 0 <= box["x"] and box["x"] + box["width"] <= 360
    assert page.locator(FIELD).is_visible()
    page.goto(f"{address}/{language.url}/search.html?q=init_process_group")
    page.locator(".search-results li").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_without_javascript_the_page_says_so(visit, address, language):
    page = visit(f"{address}/{language.url}/search.html", java_script_enabled=False)
    notice = page.locator("article .admonition.error")
    assert "JavaScript" in notice.inner_text()


def test_a_missing_index_is_reported(browser, address, language):
    with browser.new_page() as page:
        page.route("**/search-index.js", lambda route: route.abort())
        page.goto(f"{address}/{language.url}/search.html?q=gloo")
        page.locator("#search-failed").wait_for()
