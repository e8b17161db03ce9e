"""Every page of every language, in light and dark, on a desktop and on a small phone."""

import pytest
from test_pages import PAGES

WIDTHS = [1440, 360]
# Starts all rules, and those about colours again; a page need not wait for another.
START_CHECK = """
rules => {
  window.shifted = 0;
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) shifted += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
  window.checked = axe.run({ resultTypes: ["violations"], ...rules });
}
"""
FINISH_CHECK = """
async () => (await checked).violations.flatMap(rule => rule.nodes.map(
  node => `${rule.id}: ${node.html.slice(0, 150)}: ${node.failureSummary}`))
"""


@pytest.mark.timeout(300)
def test_pages_have_no_barrier_and_fit(visit, address, language, axe):
    start = f"{address}/{language.url}/index.html"
    pages = [visit(start, viewport={"width": x, "height": 740}) for x in WIDTHS]
    faults = []
    for name in PAGES:
        for page in pages:
            page.emulate_media(color_scheme="light")
            page.goto(f"{address}/{language.url}/{name}")
            page.evaluate(axe)
            page.evaluate(START_CHECK, {})
        for colors in ["light", "dark"]:
            for width, page in zip(WIDTHS, pages, strict=True):
                found = page.evaluate(FINISH_CHECK)
                faults += [f"{name}, {width} px, {colors}: {x}" for x in found]
            if colors == "light":
                for page in pages:
                    page.emulate_media(color_scheme="dark")
                    page.evaluate(START_CHECK, {"runOnly": ["color-contrast"]})
        for width, page in zip(WIDTHS, pages, strict=True):
            if page.evaluate("document.scrollingElement.scrollWidth") > width:
                faults.append(f"{name}: is wider than {width} px")
            if page.evaluate("shifted"):
                faults.append(f"{name}, {width} px: its layout shifts while it loads")
    assert faults == []
