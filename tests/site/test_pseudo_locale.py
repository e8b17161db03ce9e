"""The site in the pseudo-language: all texts are translated, and no layout breaks."""

import re

import pytest
from bs4 import BeautifulSoup
from test_diagrams_in_browser import MISPLACED

from tools.translate import pseudo_locale

pytestmark = pytest.mark.audit

# What is the same in each language: code and its output, paths of files, and names of languages.
SAME = "pre, code, svg .code, .code-block-caption, script, style, nav.languages, [lang]:not(html)"
ATTRIBUTES = ("title", "aria-label", "alt", "placeholder")
# Names: of features of PyTorch, in tables, lists and drawings, of MPI and of the licence.
NAMES = {"BSD-3-Clause", "DCP", "DDP", "DTensor", "FSDP2", "MPI", "ZeRO"}
NAMES |= {"Note"}  # Of Sphinx, and translated by its own catalogs.
ENGLISH = re.compile(r"(?<![A-Za-z])(?!(?:[KMGT]i?B|ms)\b)[A-Za-z]{2,}")  # Units are the same, too.
# Boxes whose text is cut off, and what sticks out of the page.
CUT_OFF = """
() => [...document.querySelectorAll("body *")].filter(x =>
  x.clientWidth > 1 && x.scrollWidth > x.clientWidth + 1
  && getComputedStyle(x).overflowX === "hidden"
  && !x.closest(".visually-hidden")
).map(x => `${x.tagName}.${x.className}: ${x.textContent.trim().slice(0, 60)}`)
"""


@pytest.fixture(scope="module")
def pages():
    pseudo_locale.build()
    pages = sorted(pseudo_locale.PAGES.rglob("*.html"))
    assert len(pages) > 30
    return pages


def untranslatable(html):
    soup = BeautifulSoup(html, "html.parser")
    for tag in soup.select(SAME):
        tag.decompose()
    texts = list(soup.stripped_strings)
    texts += [tag[name] for name in ATTRIBUTES for tag in soup.find_all(attrs={name: True})]
    return sorted({text for text in texts if ENGLISH.search(text)} - NAMES)


def test_all_text_can_be_translated(pages):
    found = {
        (path.relative_to(pseudo_locale.PAGES).as_posix(), text)
        for path in pages
        for text in untranslatable(path.read_text())
    }
    assert not found, "\n".join(f"{name}: {text}" for name, text in sorted(found))


@pytest.mark.parametrize("width", [360, 1280])
def test_longer_text_finds_room(pages, visit, width):
    page = visit(pages[0].as_uri(), viewport={"width": width, "height": 800})
    found = []
    for path in pages:
        page.goto(path.as_uri())
        name = path.relative_to(pseudo_locale.PAGES).as_posix()
        if page.evaluate("() => document.scrollingElement.scrollWidth") > width:
            found.append(f"{name}: is wider than {width} px")
        found += [f"{name}: cut off: {x}" for x in page.evaluate(CUT_OFF)]
        found += [f"{name}: misplaced: {x}" for x in page.evaluate(MISPLACED)]
    assert not found, "\n".join(found)
