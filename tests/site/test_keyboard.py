"""A keyboard can do everything that a mouse can, and the focus is visible."""

import pytest

PAGE = "tutorial/step-1-subclass-backend.html"
WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 360, "height": 740}
# Whether the element with the focus is on the screen and has an outline.
SEEN = """
() => {
  const box = document.activeElement.getBoundingClientRect();
  const style = getComputedStyle(document.activeElement);
  return box.bottom > 0 && box.top < innerHeight
    && box.right > 0 && box.left < innerWidth
    && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
}
"""


def test_the_first_link_skips_to_the_content(visit, address, language):
    page = visit(f"{address}/{language.url}/{PAGE}", reduced_motion="reduce")
    page.keyboard.press("Tab")
    link = page.locator(":focus")
    english = link.inner_text() == "Skip to content"
    assert english == (language.gettext == "en" or not language.complete)
    assert page.evaluate(SEEN)
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('article') !== null")


def test_everything_can_have_the_focus_and_show_it(visit, address):
    page = visit(f"{address}/en/{PAGE}", viewport=WIDE, reduced_motion="reduce")
    count = page.evaluate(
        """() => [...document.querySelectorAll("a[href], button, input, pre, summary")]
              .filter(x => x.checkVisibility()).map(x => x.classList.add("unreached")).length"""
    )
    assert count > 60
    for _ in range(count + 1):
        page.keyboard.press("Tab")
        page.evaluate("document.activeElement.classList.remove('unreached')")
        if not page.evaluate(SEEN):  # The body has the focus between the last and the first.
            assert page.evaluate("document.activeElement.outerHTML").startswith("<body")
    assert page.eval_on_selector_all(".unreached", "all => all.map(x => x.outerHTML)") == []


def press_until(page, selector):
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("x => document.activeElement.matches(x)", selector):
            return
    pytest.fail(f"{selector} cannot be reached")


@pytest.mark.parametrize("java_script_enabled", [True, False])
@pytest.mark.parametrize(
    "box, links, icon",
    [
        ("#__navigation", ".sidebar-tree a", ".nav-overlay-icon"),
        ("#__toc", ".toc-tree li li a", ".toc-header-icon"),
    ],
)
def test_drawers_open_and_close(visit, address, box, links, icon, java_script_enabled):
    page = visit(
        f"{address}/en/{PAGE}",
        viewport=PHONE,
        reduced_motion="reduce",
        java_script_enabled=java_script_enabled,
    )
    link = page.locator(links).first
    assert not link.is_visible()
    press_until(page, box)
    outline = "x => getComputedStyle(x).outlineStyle"
    assert page.locator(icon).evaluate(outline) == "solid"
    page.keyboard.press("Space")
    assert link.is_visible() and link.bounding_box()["x"] >= 0
    page.keyboard.press("Space")
    assert not link.is_visible()
    page.locator(icon).click()
    assert link.is_visible()


@pytest.mark.parametrize("motion, expected", [("no-preference", "smooth"), ("reduce", "auto")])
def test_scrolling_is_smooth_for_those_who_like_it(visit, address, motion, expected):
    page = visit(f"{address}/en/{PAGE}", reduced_motion=motion)
    root = page.locator(":root")
    assert root.evaluate("x => getComputedStyle(x).scrollBehavior") == expected
    moving = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter(
              x => parseFloat(getComputedStyle(x).transitionDuration) > 0).length"""
    )
    assert (moving > 0) == (motion == "no-preference")
