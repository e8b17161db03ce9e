"""The settings of docutils are computed once, and no two documents share them."""

CONF = """
import atexit
from docutils import frontend
made = []
original = frontend.get_default_settings
frontend.get_default_settings = lambda *x: made.append(x) or original(*x)
atexit.register(lambda: open("made.txt", "w").write(str(len(made))))
extensions = ["myst_parser", EXTENSION]
source_suffix = {".md": "markdown"}
"""


def made(documents, extension):
    """Return how often settings are computed for a page of three paragraphs."""
    documents.write("conf.py", CONF.replace("EXTENSION", extension))
    documents.write("index.md", "# Title\n\nOne.\n\nTwo.\n\nThree.\n")
    messages = {"Title": "제목", "One.": "하나.", "Two.": "둘.", "Three.": "셋."}
    documents.translate("index", messages)
    page = documents.page(language="ko")
    assert all(text in page for text in messages.values())
    return int((documents.root / "made.txt").read_text())


def test_they_are_put_together_once(documents):
    assert made(documents, '"sphinxext.rebuild.cached_settings"') == 1


def test_each_document_has_its_own():
    from docutils.parsers.rst import Parser

    from sphinxext.rebuild.cached_settings import settings

    one, other = settings(Parser), settings(Parser)
    assert vars(one) == vars(other)
    one.tab_width = 3
    assert other.tab_width == settings(Parser).tab_width == 8
