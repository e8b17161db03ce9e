"""A search that works in every script, in place of Sphinx's own.

The index is the text of the built pages, section by section, as a reader sees it. It is
written into ``search-index.js`` beside the pages, like beside like, which a server
compresses best: the headings of all sections, and their texts, with terms between two
marks. The browser folds the index and the query by the same function, and looks for the
query anywhere in the text (``static/search-engine.js``). So a word is found with any
particle behind it, with or without spaces, and as a part of an identifier.

``static/search-words.js`` lists the words of questions, the endings of words and the
synonyms, for English, Korean and Chinese. To add a language, or a word, edit this file.

``static/search.js`` shows suggestions below every field named ``q``. It loads the index as a
script, on first use: that works from a disk too, and needs no inline script.

The project must provide a template ``search.html`` in a folder of ``templates_path``, with
a form, a place with the id ``search-results``, and a hidden text with the id
``search-failed``. Forms on other pages lead to it. Colours and sizes come from the variables
of Furo, such as ``--color-background-primary``.

Elements of the class ``unsearched`` are left out, with all that is in them, and so is folded
code, which would be half of the index. A page that only lists other pages says how much less it
is worth as a result, in its metadata: ``search-weight: 0.5``. For a page without metadata, such as
one of a script, the configuration value ``search_weights`` says it. This does not count for a
query with all words of its title.

The texts belong to the message catalog "sphinx", as those of templates do.
"""

import functools
import json
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.locale import get_translation

gettext = get_translation("sphinx")

STATIC = Path(__file__).parent / "static"
INDEX = "search-index.js"
# Files of Sphinx's own search, of its highlighter, and of the texts of both; and two that
# only these, and themes that listen to the keyboard, need.
REPLACED = ["searchtools.js", "language_data.js", "sphinx_highlight.js", "translations.js"]
REPLACED += ["doctools.js", "documentation_options.js"]
# Elements within a line of text; any other separates words.
INLINE = set("a abbr b code dfn em i kbd mark q s samp small span strong sub sup u var wbr".split())
VOID = set("area br col embed hr img input link meta source track wbr".split())
UNSEEN = {"script", "style", "title"}
UNSEEN_CLASSES = {"headerlink", "unsearched"}
HEADING = re.compile(r"h[1-6]$")
# A page writes the terms that it defines into a list of definitions, or emphasizes them.
TERM = {"dt", "dfn", "em", "strong"}
MARK = "\x7f"  # Before and after a term; as short as can be, and in no text.


class Sections(HTMLParser):
    """Collect the sections of a page: ``[anchor, heading, text]``."""

    def __init__(self) -> None:
        super().__init__()
        self.sections: list[list[str]] = []
        self.open: list[int] = []  # Places in ``sections``: those around this element.
        self.elements: list[str] = []
        self.in_heading = False
        # How many elements were open outside of the unseen one, and outside of the term.
        self.unseen: int | None = None
        self.term: int | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self._separate(tag)
        if tag in VOID:
            return
        classes = (attributes.get("class") or "").split()
        unseen = tag in UNSEEN or UNSEEN_CLASSES.intersection(classes)
        folded_code = tag == "pre" and "details" in self.elements
        if self.unseen is None and (unseen or folded_code):
            self.unseen = len(self.elements)
        if tag in TERM and self.open and self.unseen is None and self.term is None:
            self._add(MARK)
            self.term = len(self.elements)
        self.elements.append(tag)
        if tag == "section":
            self.open.append(len(self.sections))
            self.sections.append([attributes.get("id") or "", "", ""])
        elif HEADING.match(tag):
            self.in_heading = True

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.elements:
            return
        while self.elements.pop() != tag:
            pass
        if self.unseen is not None and len(self.elements) <= self.unseen:
            self.unseen = None
        if self.term is not None and len(self.elements) <= self.term:
            self._add(MARK)
            self.term = None
        self._separate(tag)
        if tag == "section":
            self.open.pop()
        elif HEADING.match(tag):
            self.in_heading = False

    def handle_data(self, data: str) -> None:
        if self.open and self.unseen is None:
            self._add(data.replace(MARK, ""))

    def _separate(self, tag: str) -> None:
        if tag not in INLINE:
            self.handle_data(" ")

    def _add(self, text: str) -> None:
        self.sections[self.open[-1]][1 if self.in_heading else 2] += text


@functools.cache  # `make preview` builds again and again in one process.
def sections_of(html: str) -> list[list[str]]:
    """Return ``[anchor, heading, text]`` of each section; the caller must not change them."""
    parser = Sections()
    parser.feed(html)
    parser.close()
    return [[anchor, _tidy(heading), _tidy(text)] for anchor, heading, text in parser.sections]


def _tidy(text: str) -> str:
    # One form of each character, since the browser folds them one by one.
    return unicodedata.normalize("NFC", " ".join(text.split()))


def replace_builtin_search(app: Sphinx) -> None:
    if isinstance(app.builder, StandaloneHTMLBuilder):
        app.builder.search = False
        app.add_js_file("search.js", defer="defer")
        app.add_css_file("search.css")
        app.config.html_static_path = [*app.config.html_static_path, str(STATIC)]


def add_search_page(app: Sphinx) -> list[tuple[str, dict, str]]:
    return [("search", {}, "search.html")]


def drop_builtin_scripts(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    unused = {f"_static/{name}" for name in REPLACED}
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if getattr(script, "filename", script) not in unused
    ]


def write_index(app: Sphinx, exception: Exception | None) -> None:
    builder = app.builder
    if exception or not isinstance(builder, StandaloneHTMLBuilder):
        return
    for name in REPLACED:
        (app.outdir / "_static" / name).unlink(missing_ok=True)
    pages, headings, texts = [], [], []
    # In the order of reading: of two pages that fit as well, the earlier comes first.
    for name in dict.fromkeys([*app.env.collect_relations(), *sorted(app.env.found_docs)]):
        # From the file and not from memory, since Sphinx writes only the pages that changed.
        html = Path(builder.get_output_path(name)).read_text(encoding="utf-8")
        sections = sections_of(html[html.find("<section") : html.rfind("</section>")])
        own = app.env.metadata[name].get("search-weight", 1)
        weight = float(app.config.search_weights.get(name, own))
        anchors = [anchor for anchor, _, _ in sections]
        pages.append([builder.get_target_uri(name), weight, anchors])
        headings += [heading for _, heading, _ in sections]
        texts += [text for _, _, text in sections]
    messages = {
        "results": gettext("Search results"),
        "found": gettext("Pages found: %(count)s"),
        "similar": gettext("No exact match. Similar pages: %(count)s"),
        "none": gettext("No page found."),
        "all": gettext("Show all pages found: %(count)s"),
    }
    index = {"pages": pages, "headings": headings, "texts": texts, "messages": messages}
    data = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    (app.outdir / INDEX).write_text(f"globalThis.searchIndex = {data};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("search_weights", {}, "env", types=[dict])
    app.connect("builder-inited", replace_builtin_search)
    app.connect("html-collect-pages", add_search_page)
    app.connect("html-page-context", drop_builtin_scripts)
    app.connect("build-finished", write_index)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
