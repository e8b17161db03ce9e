"""People write style sheets in several files, and a page loads one."""

import re

CONFIGURATION = """
extensions = ["sphinxext.theme.joined_styles"]
html_css_files = ["site.css"]
joined_styles = {"site.css": "styles"}
"""


def configure(documents):
    documents.configure(CONFIGURATION)
    documents.write("index.rst", "Title\n=====\n")


def test_a_page_loads_all_parts_as_one(documents):
    configure(documents)
    documents.write("styles/b.css", "p { color: red; }\n")
    documents.write("styles/a.css", "a { color: blue; }\n")
    first = documents.page()
    sheet = documents.root / "out/_static/site.css"
    assert sheet.read_text() == "a { color: blue; }\n\np { color: red; }\n"
    [link] = re.findall(r"site\.css\?v=(\w+)", first)
    documents.write("styles/b.css", "p { color: green; }\n")
    documents.write("index.rst", "Title\n=====\n\nMore.\n")
    assert re.findall(r"site\.css\?v=(\w+)", documents.page()) != [link], "browsers keep the old"


def test_a_folder_without_style_sheets(documents):
    configure(documents)
    status, output = documents.build()
    assert status != 0
    assert "joined_styles: no style sheets in styles" in output
