"""Read from the HTML of a page the facts that the checks need.

Reading takes longer than checking. So the facts of a page are kept, as JSON, for as long as
the bytes of the page are the same. The facts describe the page and judge nothing.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup, NavigableString

from ..processes.progress import progress
from ..state.records import Results

# Elements that lead somewhere, or load something.
LINKING = ["a", "link", "script", "img", "iframe"]
# Markup of the sources, and of templates, as a reader would see it.
MARKUP = re.compile(
    r"`|\*\*|\]\(|:[a-z][\w:]*:(?=`)|\{[a-z:]+\}`|^\.\. |:::|^#+ |\\[ *_`]|"
    r"\{\{|\{%|\$\{|%\(\w+\)|&(?:lt|gt|amp|quot|#\d+);|</?[a-z]+[ >/]|\bmsg(?:id|str)\b",
    re.M,
)
CODE = {"code", "pre", "script", "style", "kbd", "samp"}
# The id and the class of the box around a listing.
NUMBERED = re.compile(r"code-(\d+)$")
HIGHLIGHTED = re.compile(r"highlight-(\S+)")
# A Tag of Beautiful Soup, whose own types let each attribute be missing, or a list.
Element = Any


@dataclass(frozen=True)
class PageFacts:
    """What a page contains; the fields are values that JSON can express."""

    language: str | None
    sections: list[str]
    anchors: list[str]
    # The number of each listing, or 0, and a digest of its code without comments.
    listings: list[tuple[int, str]]
    leaked_markup: list[tuple[str, str]]  # With some of the text around it.
    # The name of the element, the address, and the relations of a <link>.
    links: list[tuple[str, str, list[str]]]
    canonical: list[str]
    alternates: list[tuple[str, str]]  # Languages and addresses.
    descriptions: list[str]
    previews: dict[str, list[str]]  # The properties of Open Graph.


def facts_of_pages(site: Path) -> dict[Path, PageFacts]:
    """Return the facts of all pages of a site, by their paths."""
    results = Results("pages")
    pages = {path: path.read_text() for path in sorted(site.rglob("*.html"))}
    keys = {path: _digest(html) for path, html in pages.items()}
    unknown = {key: pages[path] for path, key in keys.items() if key not in results.last}
    facts_by_key = dict(zip(unknown, _read_all(list(unknown.values())), strict=True))
    facts = {
        path: PageFacts(**results.get(key, partial(facts_by_key.get, key)))
        for path, key in keys.items()
    }
    results.save()
    return facts


def _read_all(pages: list[str]) -> list[dict[str, Any]]:
    facts: list[dict[str, Any]] = []
    with (
        progress(lambda: f"{len(facts)} of {len(pages)} pages looked at"),
        ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool,
    ):
        facts.extend(pool.map(read, pages))
    return facts


def read(html: str) -> dict[str, Any]:
    """Return the fields of PageFacts of a page."""
    page: Element = BeautifulSoup(html, "html.parser")
    head = page.head
    previews: dict[str, list[str]] = {}
    for tag in head.find_all("meta", property=True):
        previews.setdefault(tag["property"].removeprefix("og:"), []).append(tag["content"])
    return {
        "language": page.html.get("lang"),
        "sections": [tag["id"] for tag in page.find_all("section", id=True)],
        "anchors": sorted({tag["id"] for tag in page.find_all(id=True)}),
        "listings": [_listing(tag) for tag in page.find_all("pre")],
        "leaked_markup": list(_leaked_markup(page)),
        "links": [
            (tag.name, address, tag.get("rel") or [])
            for tag in page.find_all(LINKING)
            if (address := tag.get("href") or tag.get("src"))
        ],
        "canonical": [tag["href"] for tag in head.find_all("link", rel="canonical")],
        "alternates": [
            (tag["hreflang"], tag["href"])
            for tag in head.find_all("link", rel="alternate", hreflang=True)
        ],
        "descriptions": [x["content"] for x in head.find_all("meta", {"name": "description"})],
        "previews": previews,
    }


def _listing(tag: Element) -> tuple[int, str]:
    from sphinxext.translation.translatable_comments import code_without_comments

    numbered, highlighted = tag.find_parent(id=NUMBERED), tag.find_parent(class_=HIGHLIGHTED)
    number = NUMBERED.match(numbered["id"]) if numbered else None
    lexer = HIGHLIGHTED.search(" ".join(highlighted["class"])) if highlighted else None
    # Comments are in the language of the page.
    code = "\n".join(code_without_comments(tag.get_text(), lexer[1] if lexer else "none"))
    return int(number[1]) if number else 0, _digest(code)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _leaked_markup(page: Element) -> Iterator[tuple[str, str]]:
    """Yield source markup in running text, and some of the text around it."""
    for text in page.find_all(string=MARKUP):
        is_shown = type(text) is NavigableString
        markup = MARKUP.search(text)
        if is_shown and markup and not any(parent.name in CODE for parent in text.parents):
            around = text[max(markup.start() - 30, 0) : markup.end() + 30]
            yield markup[0], " ".join(around.split())
