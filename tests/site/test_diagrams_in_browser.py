"""The diagrams, as a browser lays them out in each language."""

import json

from bs4 import BeautifulSoup, SoupStrainer

from tools.pages.provenance import recorded_runs
from tools.project.paths import RUN_SECONDS, SITE

WITH_DIAGRAMS = sorted(
    path.relative_to(SITE / "en").as_posix()
    for path in (SITE / "en").rglob("*.html")
    if '<figure class="diagram">' in path.read_text()
)
# Texts that leave the drawing or the width that was meant for them, or lie on others.
MISPLACED = """
() => [...document.querySelectorAll("figure.diagram svg")].flatMap(svg => {
  const size = svg.viewBox.baseVal;
  const texts = [...svg.querySelectorAll("text")].map(x => [x, x.getBBox()]);
  const apart = (a, b) => a.x + a.width <= b.x + 1 || b.x + b.width <= a.x + 1
                       || a.y + a.height <= b.y + 3 || b.y + b.height <= a.y + 3;
  return texts.filter(([text, box], i) =>
    box.x < 0 || box.y < 0 || box.x + box.width > size.width
    || box.y + box.height > size.height
    || box.width > Number(text.dataset.width ?? Infinity) + 2
    || texts.slice(i + 1).some(([_, other]) => !apart(box, other))
  ).map(([text]) => `${svg.getAttribute("aria-labelledby")}: ${text.textContent}`);
})
"""
# Drawings that are wider than a phone, or whose texts are too small to be read there.
OF_WRONG_SIZE = """
() => [...document.querySelectorAll("figure.diagram svg")].filter(svg => {
  const { width } = svg.getBoundingClientRect();
  return width > 340 || width / svg.viewBox.baseVal.width < 0.9;
}).map(svg => svg.getAttribute("aria-labelledby"))
"""
# Puts the article of another page into this one, since all have the same styles and scripts
# do not change drawings. It takes a tenth of the time of a visit.
SHOW = """
async address => {
  const html = await (await fetch(address)).text();
  const other = new DOMParser().parseFromString(html, "text/html");
  document.querySelector("article").replaceWith(other.querySelector("article"));
}
"""


def test_texts_keep_to_their_places(visit, address, language):
    folder = f"{address}/{language.url}"
    page = visit(f"{folder}/index.html", viewport={"width": 360, "height": 740})
    assert len(WITH_DIAGRAMS) >= 20
    for name in WITH_DIAGRAMS:
        page.evaluate(SHOW, f"{folder}/{name}")
        assert page.evaluate(MISPLACED) + page.evaluate(OF_WRONG_SIZE) == [], name


def test_each_has_a_name_and_a_description(language):
    for name in WITH_DIAGRAMS:
        html, figures = (SITE / language.url / name).read_text(), SoupStrainer("figure")
        soup = BeautifulSoup(html, "html.parser", parse_only=figures)
        for drawing in soup.select("figure.diagram svg"):
            title, description = (
                soup.find(id=drawing[attribute]).get_text()
                for attribute in ("aria-labelledby", "aria-describedby")
            )
            assert title.strip() and len(description) >= 25, (name, title)
            if language.gettext != "en" and language.complete:
                assert not description.isascii(), (name, description)


def test_every_sample_has_its_run_time():
    assert json.loads(RUN_SECONDS.read_text()).keys() == recorded_runs().keys(), (
        "run `make run-times`"
    )
