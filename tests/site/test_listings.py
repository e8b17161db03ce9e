"""Listings: what a reader copies, and what they look like."""

PAGE = "overview/memory.html"
WITH_A_LONG_OUTPUT = "right/smallest-backend.html"
ALLOWED = {"permissions": ["clipboard-read", "clipboard-write"]}


def test_the_button_copies_the_code(visit, address, language):
    page = visit(f"{address}/{language.url}/{PAGE}", **ALLOWED)
    listing = page.locator("div.highlight", has=page.locator("button")).first
    listing.hover()
    label = listing.get_by_role("button").get_attribute("aria-label")
    listing.get_by_role("button").click()
    page.wait_for_function("() => document.querySelector('.copy-button.done')")
    assert listing.get_by_role("button").get_attribute("aria-label") != label
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied == listing.locator("pre").text_content()
    assert copied.strip()


def test_prompts_output_and_line_numbers_stay_behind(visit, address):
    page = visit(f"{address}/en/{PAGE}", **ALLOWED)
    listing = page.locator("div.highlight", has=page.locator("button")).first
    listing.locator("pre").evaluate(
        "x => x.innerHTML = '<span class=linenos>1</span><span class=gp>$ </span>make\\n'"
        " + '<span class=go>done</span>\\n'"
    )
    listing.hover()
    listing.get_by_role("button").click()
    page.wait_for_function("() => document.querySelector('.copy-button.done')")
    assert page.evaluate("() => navigator.clipboard.readText()") == "make\n"


def test_output_has_no_button_and_opens_by_keyboard(visit, address):
    page = visit(f"{address}/en/{WITH_A_LONG_OUTPUT}")
    assert page.locator(".program-output").count() >= 1
    assert page.locator(".program-output button").count() == 0
    folded = page.locator("details.program-output").first
    assert not folded.locator("pre").is_visible()
    folded.locator("summary").focus()
    page.keyboard.press("Enter")
    assert folded.locator("pre").is_visible()
