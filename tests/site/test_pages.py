"""Every page of every language, looked at in a real browser."""

import re

from tools.project.languages import LANGUAGES
from tools.project.paths import SITE
from tools.project.published import PUBLISHED

PAGES = sorted(
    path.relative_to(SITE / LANGUAGES[0].url).as_posix()
    for path in (SITE / LANGUAGES[0].url).rglob("*.html")
)
PAGES = [page for page in PAGES if page not in PUBLISHED.moved_files]
LOOK_UP = {f"tutorial/{x}.html" for x in ("every-operation", "error-messages", "releases")}
READING = re.compile(r'<p class="page-times">\D*(\d+)')
NEXT = re.compile(r'<a class="next-page" href="([^"]+)"')


def test_pages_load_without_a_fault(visit, address):
    """In one language; the audits look at the pages of all."""
    language = LANGUAGES[-1]
    page, titles = visit(f"{address}/{language.url}/index.html"), set()
    for name in PAGES:
        page.goto(f"{address}/{language.url}/{name}")
        assert page.locator("html").get_attribute("lang") == language.html
        assert page.locator("h1").count() == 1
        titles.add(page.title())
        if page.locator("a.next-page").count():
            page.locator("a.next-page").click(trial=True)
    assert len(titles) == len(PAGES) > 10


def test_old_addresses_lead_to_the_new_ones(visit, address, language):
    page = visit(f"{address}/{language.url}/index.html")
    for old, new in PUBLISHED.moved.items():
        page.goto(f"{address}/{language.url}/{old}.html")
        page.wait_for_url(f"{address}/{language.url}/{new}.html")


def test_next_leads_through_the_whole_tutorial(language):
    """As the links say; that they can be clicked, and the pages open, is seen above."""
    folder = (SITE / language.url).resolve()
    path, seen = folder / "index.html", []
    while path:
        assert path not in seen
        seen.append(path)
        link = NEXT.search(path.read_text())
        path = link and (path.parent / link[1]).resolve()
    assert {x.relative_to(folder).as_posix() for x in seen} == {*PAGES} - {"search.html"}


def test_only_pages_to_look_things_up_take_long_to_read(language):
    texts = {page: (SITE / language.url / page).read_text() for page in PAGES}
    times = {page: READING.search(text) for page, text in texts.items()}
    minutes = {page: int(time[1]) for page, time in times.items() if time}
    assert len(minutes) > 70
    # Pages aim at 14 minutes. The rest is room for a sentence more, and for its translations.
    assert {page for page, time in minutes.items() if time > 16} <= LOOK_UP


def test_the_chrome_is_translated(visit, address, language):
    page = visit(f"{address}/{language.url}/tutorial/basics.html")
    labels = page.evaluate(
        """() => [...document.querySelectorAll("[aria-label], [title], title")]
              .map(x => x.getAttribute("aria-label") ?? x.getAttribute("title") ?? x.textContent)
              .concat([...document.querySelectorAll(
                  ".toc-title, .back-to-top, .context, .skip-to-content, " +
                  ".bottom-of-page, .caption-text"
              )].map(x => x.textContent))
              .map(x => x.trim()).filter(x => x)"""
    )
    assert len(labels) > 10
    if language.gettext == "en" or not language.complete:
        return
    plain = [x for x in labels if x.isascii() and x not in ("Furo",)]
    plain += [x for x in labels if x.startswith("Toggle")]  # and then a title
    assert plain == [], "still in English"
