"""A page says how much of it is translated."""

CONFIGURATION = """
extensions = ["sphinxext.translation_progress"]
exclude_patterns = ["out"]
locale_dirs = ["locales"]
templates_path = ["templates"]
html_theme = "basic"
"""
MESSAGES = {"Title": "제목", "First.": "첫째.", "Second.": "둘째.", "CPU": "CPU"}


def percent(documents, messages, language="ko"):
    documents.write("conf.py", CONFIGURATION)
    documents.write("index.rst", "Title\n=====\n\nFirst.\n\nSecond.\n\nCPU\n\n.. toctree::\n   :caption: More\n\n   other\n")
    documents.write("other.rst", "Other\n=====\n")
    documents.write("templates/page.html", "[{{ translated_percent }}]")
    documents.translate("index", messages)
    return documents.page(language=language)


def test_complete(documents):
    assert percent(documents, MESSAGES) == "[100]"


def test_half(documents):
    half = {message: MESSAGES[message] for message in ("Title", "CPU")}
    assert percent(documents, half) == "[50]"


def test_the_source_language(documents):
    assert percent(documents, {}, language="en") == "[100]"
