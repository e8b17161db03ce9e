"""A table of terms, made from a CSV file, with notes that can be translated."""

from bs4 import BeautifulSoup

CONFIGURATION = """
extensions = ["sphinxext.pages.term_table"]
language_switcher_languages = [
    {"sphinx": "en", "url": "en", "html": "en", "name": "English"},
    {"sphinx": "ko", "url": "ko", "html": "ko", "name": "한국어"},
    {"sphinx": "ja", "url": "ja", "html": "ja", "name": "日本語"},
]
term_table_proposal = "https://x.example/new?title=a"
"""
TERMS = "term,ko,avoid_ko,note\nall-reduce,올리듀스,전체 축소|합산,a *note*\nrank,랭크,,\n"


def table(documents, language="en", terms=TERMS):
    documents.configure(CONFIGURATION)
    documents.write("terms.csv", terms)
    documents.write("index.rst", "Terms\n=====\n\n.. term-table:: terms.csv\n")
    documents.write_catalog("index", {"Terms": "용어", "a *note*": "참고"})
    return BeautifulSoup(documents.page(language=language), "html.parser")


def test_a_row_for_each_term(documents):
    soup = table(documents)
    head, *rows = soup.table("tr")
    assert [x.get_text() for x in head("th")] == ["English", "한국어", "Remark"]
    assert [x.get_text() for x in rows[0]("td")] == [
        "all-reduce",
        "올리듀스 not:전체 축소 합산",
        "a *note*",
    ]
    assert [x["lang"] for x in rows[0]("span", lang=True)] == ["en", "ko", "ko", "ko"]
    assert rows[0]["id"] == "term-all-reduce"
    assert soup.find("a", href="https://x.example/new?title=a").get_text() == "Propose a term"


def test_notes_are_translated_and_terms_are_not(documents):
    soup = table(documents, language="ko")
    cells = [x.get_text() for x in soup.table("tr")[1]("td")]
    assert cells[0] == "all-reduce" and cells[2] == "참고"


def test_a_file_that_is_no_table_is_named(documents):
    documents.configure(CONFIGURATION)
    documents.write("terms.csv", "word,ko\nrank,랭크\n")
    documents.write("index.rst", "Terms\n=====\n\n.. term-table:: terms.csv\n")
    status, output = documents.build()
    assert status != 0
    assert "index.rst:4" in output and "terms.csv is not a table of terms" in output


def test_notes_are_messages_of_the_page(documents):
    table(documents)
    status, output = documents.build(builder="gettext")
    assert status == 0, output
    template = (documents.root / "out/index.pot").read_text()
    assert 'msgid "a *note*"' in template and "rank" not in template
