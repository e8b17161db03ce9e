"""Pages of every language, in light and dark, on a desktop and a small phone."""

import pytest
from looked_at import EACH_NIGHT_ALL, pages

WIDTHS = [1440, 360]
# A score of layout shifts that nobody sees (Web Vitals call 0.1 good).
INVISIBLE_SHIFT = 0.001
# Starts a check and does not wait for its end: no page waits for another.
START_CHECK = """
() => {
  window.shifted = 0;
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) shifted += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
  window.checked = axe.run({ resultTypes: ["violations"], preload: false });
}
"""
# In other colours, other contrasts are all that can be wrong, and they are the same for
# texts that have the same classes all the way up: one of each kind is looked at.
START_CHECK_OF_COLORS = """
() => {
  const kinds = new Map();
  const kind = x => x ? kind(x.parentElement) + `>${x.localName}.${x.className}` : "";
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    if (texts.currentNode.data.trim()) {
      const element = texts.currentNode.parentElement;
      kinds.set(kind(element) + getComputedStyle(element).color, element);
    }
  }
  window.checked = axe.run(
    { include: [...kinds.values(), ...document.querySelectorAll("input")] },
    { resultTypes: ["violations"], runOnly: ["color-contrast"] });
}
"""
CAPTIONS_FIT = """
() => [...document.querySelectorAll(".code-block-caption")].every(
  caption => caption.scrollWidth <= caption.clientWidth)
"""
FINISH_CHECK = """
async () => (await checked).violations.flatMap(rule => rule.nodes.map(
  node => `${rule.id}: ${node.html.slice(0, 150)}: ${node.failureSummary}`))
"""


def start_check(page, axe):
    page.evaluate(axe)
    page.evaluate(START_CHECK)


def always_shifts(visit, page, axe):
    """Load the page four times more, with nothing cached: say whether its layout shifts each time.

    A busy Chromium paints before it has a fallback font or all rows of a table. Then the
    page shifts now and then, while a page that is at fault always does.
    """
    for _ in range(4):
        again = visit(page.url, viewport=page.viewport_size)
        start_check(again, axe)
        again.evaluate(FINISH_CHECK)
        if again.evaluate("shifted") <= INVISIBLE_SHIFT:
            return False
    return True


@pytest.mark.timeout(3600)
@EACH_NIGHT_ALL
def test_pages_have_no_barrier_and_fit(visit, address, language, axe, which):
    start = f"{address}/{language.url}/index.html"
    views = [visit(start, viewport={"width": x, "height": 740}) for x in WIDTHS]
    faults = []
    for name in pages(which, language):
        for page in views:
            page.emulate_media(color_scheme="light")
            page.goto(f"{address}/{language.url}/{name}")
            start_check(page, axe)
        for colors in ["light", "dark"]:
            for width, page in zip(WIDTHS, views, strict=True):
                findings = page.evaluate(FINISH_CHECK)
                faults += [f"{name}, {width} px, {colors}: {x}" for x in findings]
            if colors == "light":
                for page in views:
                    page.emulate_media(color_scheme="dark")
                    page.evaluate(START_CHECK_OF_COLORS)
        for width, page in zip(WIDTHS, views, strict=True):
            if page.evaluate("document.scrollingElement.scrollWidth") > width:
                faults.append(f"{name}: is wider than {width} px")
            if not page.evaluate(CAPTIONS_FIT):
                faults.append(f"{name}, {width} px: the caption of a listing is cut off")
            if page.evaluate("shifted") > INVISIBLE_SHIFT and always_shifts(visit, page, axe):
                faults.append(f"{name}, {width} px: its layout shifts while it loads")
    assert faults == []
