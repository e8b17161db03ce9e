"""Pages say how much of them is translated, and where to continue."""

from bs4 import BeautifulSoup

OPEN = [
    {"state": "fuzzy", "text": "First `text`.", "edit": "https://x.example/po#L7"},
    {"state": "untranslated", "text": "word " * 99, "edit": "https://x.example/po#L9"},
]
COMPLETE = {
    "edit": "https://x.example/other#L1",
    "translated": 5,
    "fuzzy": 0,
    "untranslated": 0,
    "open": [],
    "last_change": "2026-01-31",
    "behind_since": "",
    "days_behind": None,
}
BEHIND = {
    "edit": "https://x.example/po#L7",
    "translated": 3,
    "fuzzy": 1,
    "untranslated": 1,
    "open": OPEN,
    "last_change": "2026-02-01",
    "behind_since": "2026-02-03",
    "days_behind": 4,
}
CONFIGURATION = f"""
extensions = ["sphinxext.translation.translation_status"]
language_switcher_languages = [
    {{"sphinx": "en", "url": "en", "html": "en", "name": "English"}},
    {{"sphinx": "zh_CN", "url": "zh-cn", "html": "zh-CN", "name": "简体中文"}},
]
translation_status = {{
    "en": {{"index": {{"edit": "https://x.example/md"}}}},
    "zh_CN": {{"index": {BEHIND}, "state/all": {COMPLETE}, "sphinx": {COMPLETE}}},
}}
"""
TEMPLATE = """
[{{ edit_address }}|{{ translation.open | length if translation else "source" }}|
{{- translation.anchor if translation else "" }}]{{ body }}
"""


def build(documents, language):
    documents.configure(CONFIGURATION)
    documents.write("index.rst", "Home\n====\n\n.. toctree::\n\n   state/all\n")
    documents.write("state/all.rst", "State\n=====\n\n.. translation-status::\n")
    documents.write("templates/page.html", TEMPLATE)
    home = documents.page(language=language)
    soup = BeautifulSoup((documents.root / "out/state/all.html").read_text(), "html.parser")
    return home, soup


def test_a_page_knows_its_own_state(documents):
    home, _ = build(documents, "zh_CN")
    anchor = "state/all.html#translation-zh-cn-index"
    assert f"[https://x.example/po#L7|2|{anchor}]" in home


def test_a_source_page_leads_to_its_source(documents):
    home, _ = build(documents, "en")
    assert "[https://x.example/md|source|]" in home


def test_all_pages_together_and_those_that_are_not_complete(documents):
    _, soup = build(documents, "en")
    [table] = soup.find_all("table")
    rows = [[cell.get_text(strip=True) for cell in row("td")] for row in table("tr")[1:]]
    assert rows == [
        ["All pages", "13", "1", "1", "2026-02-01", "2026-02-03 (4 days)"],
        ["Home", "3", "1", "1", "2026-02-01", "2026-02-03 (4 days)"],
    ]
    assert soup.find(id="translation-zh-cn").find(["h2", "h1"]).span["lang"] == "zh-CN"


def test_open_messages_can_be_found_and_edited(documents):
    _, soup = build(documents, "en")
    assert soup.find("a", href="#translation-zh-cn-index")
    items = soup.find(id="translation-zh-cn-index").find_all("li")
    assert [item.a["href"] for item in items] == [x["edit"] for x in OPEN]
    texts = [" ".join(item.get_text().split()) for item in items]
    assert texts[0] == "Fuzzy First `text`."
    assert texts[1].startswith("Untranslated word word") and texts[1].endswith("…")
    assert items[0].p.code["lang"] == "en", "and it is shown as it is written"
