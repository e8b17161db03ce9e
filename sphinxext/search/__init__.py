"""A search that works in every script, in place of Sphinx's own.

The index is the text of the built pages, section by section, as a reader sees it. It is
written into ``search-index.js`` beside the pages, like beside like, which a server
compresses best: the headings of all sections, and their texts, with terms between two
marks. ``SearchEngine.of`` reads that. Nothing is split into words here: the
browser folds the index and the query by one and the same function, and looks for the
query anywhere in the text (``static/search-engine.js``). So a word is found whatever
particle follows it, with or without spaces, and as a part of an identifier.

A query may be a question. ``static/search-words.js`` lists the words of questions, the
endings of words and the synonyms, for English, Korean and Chinese. To add a language, or
a word, edit this file. A page is found by what remains of a question. It need not have
all of it, and comes the earlier, the more it has and the closer that stands together.

``static/search.js`` shows suggestions below every field named ``q``. It loads the index as a
script, on first use: that works from a disk too, and needs no inline script.

There is no configuration. The project must provide a template ``search.html`` in a folder of
``templates_path``: the page with all results. This is enough in most themes; in Furo, the
block is ``content``::

    {% extends "page.html" %}
    {% block body %}
    <p id="search-failed" hidden>The search index could not be loaded.</p>
    <form><input name="q"></form>
    <div id="search-results"></div>
    {% endblock %}

The field beside the results is the one of this page. Fields on other pages lead to it: the
``action`` of their form must be ``{{ pathto("search") }}``, as in the search box of most
themes. Colours and sizes come from the variables of Furo, such as
``--color-background-primary``. With another theme, the project's style sheet must define
those that ``static/search.css`` uses.

Elements of the class ``unsearched`` are left out, with all that is in them.

A page that is only about other pages, as a list of them is, says how much less it is worth
as a result, in its metadata: ``search-weight: 0.5``. This does not count for a query with
all words of its title.

The texts belong to the message catalog "sphinx", as those of templates do: a project
translates them in ``sphinx.po`` below ``locale_dirs``, beside the catalogs of its pages.
"""

import hashlib
import json
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from sphinx.locale import get_translation

gettext = get_translation("sphinx")

STATIC = Path(__file__).parent / "static"
INDEX = "search-index.js"
KNOWN = "search-sections.json"  # Reading a page takes longer than writing it.
OWN_TEXT = Path(__file__).read_bytes()
# Files of Sphinx's own search, of its highlighter, and of the texts of both.
REPLACED = ["searchtools.js", "language_data.js"]
REPLACED += ["sphinx_highlight.js", "translations.js"]
# Only the above, and themes that listen to the keyboard, need these.
REPLACED += ["doctools.js", "documentation_options.js"]
# Elements within a line of text; any other separates words.
INLINE = {"a", "abbr", "b", "code", "dfn", "em", "i", "kbd", "mark", "q", "s", "samp"}
INLINE |= {"small", "span", "strong", "sub", "sup", "u", "var", "wbr"}
VOID = {"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source"}
VOID |= {"track", "wbr"}
UNSEEN = {"script", "style", "title"}
UNSEEN_CLASSES = {"headerlink", "unsearched"}
HEADING = re.compile(r"h[1-6]$")
# What a page defines, it writes into a list of definitions or emphasizes.
TERM = {"dt", "dfn", "em", "strong"}
MARK = "\x7f"  # Before and after a term; as short as can be, and in no text.


class Sections(HTMLParser):
    """Collect the sections of a page: ``[anchor, heading, text]``."""

    def __init__(self, page):
        super().__init__()
        self.found: list[list[str]] = []
        self.open = []  # Places in ``found``: the sections around this element.
        self.elements = []
        self.in_heading = False
        # How many elements were open outside of the unseen one, and outside of the term.
        self.unseen = self.term = None
        self.feed(page)
        self.close()
        for section in self.found:
            section[1:] = map(tidy, section[1:])

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in INLINE:
            self.handle_data(" ")
        if tag in VOID:
            return
        classes = (attributes.get("class") or "").split()
        if self.unseen is None and (tag in UNSEEN or UNSEEN_CLASSES.intersection(classes)):
            self.unseen = len(self.elements)
        if tag in TERM and self.open and self.unseen is None and self.term is None:
            self._add(MARK)
            self.term = len(self.elements)
        self.elements.append(tag)
        if tag == "section":
            self.open.append(len(self.found))
            self.found.append([attributes.get("id", ""), "", ""])
        elif HEADING.match(tag):
            self.in_heading = True

    def handle_startendtag(self, tag, attributes):
        if tag not in INLINE:
            self.handle_data(" ")

    def handle_endtag(self, tag):
        if tag not in self.elements:
            return
        while self.elements.pop() != tag:
            pass
        if self.unseen is not None and len(self.elements) <= self.unseen:
            self.unseen = None
        if self.term is not None and len(self.elements) <= self.term:
            self._add(MARK)
            self.term = None
        if tag not in INLINE:
            self.handle_data(" ")
        if tag == "section":
            self.open.pop()
        elif HEADING.match(tag):
            self.in_heading = False

    def handle_data(self, data):
        if self.open and self.unseen is None:
            self._add(data.replace(MARK, ""))

    def _add(self, text):
        self.found[self.open[-1]][1 if self.in_heading else 2] += text


def tidy(text):
    # One form of each character, since the browser folds them one by one.
    return unicodedata.normalize("NFC", " ".join(text.split()))


def replace_builtin_search(app):
    if app.builder.format == "html":
        app.builder.search = False
        app.add_js_file("search.js", defer="defer")
        app.add_css_file("search.css")


def add_static_files(app, config):
    config.html_static_path = [*config.html_static_path, str(STATIC)]


def add_search_page(app):
    return [("search", {}, "search.html")]


def drop_builtin_scripts(app, pagename, templatename, context, doctree):
    unused = {f"_static/{name}" for name in REPLACED}
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if getattr(script, "filename", script) not in unused
    ]


def write_index(app, exception):
    if exception or app.builder.format != "html":
        return
    for name in REPLACED:
        (app.outdir / "_static" / name).unlink(missing_ok=True)
    # In the order of reading: of two pages that fit as well, the earlier comes first.
    names = [*app.env.collect_relations(), *sorted(app.env.found_docs)]
    index: dict[str, Any] = {"pages": [], "headings": [], "texts": []}
    known, used = _known_sections(app), {}
    for name in dict.fromkeys(names):
        # What was written, and not what is in memory: Sphinx writes only what changed.
        html = Path(app.builder.get_output_path(name)).read_bytes()
        # All around the sections may be of this build alone: at the foot stands its commit.
        sections = html[html.find(b"<section") : html.rfind(b"</section>")]
        key = hashlib.sha256(OWN_TEXT + sections).hexdigest()
        used[key] = known.get(key) or Sections(html.decode()).found
        weight = float(app.env.metadata[name].get("search-weight", 1))
        anchors = [anchor for anchor, _, _ in used[key]]
        index["pages"].append([app.builder.get_target_uri(name), weight, anchors])
        index["headings"] += [heading for _, heading, _ in used[key]]
        index["texts"] += [text for _, _, text in used[key]]
    index["messages"] = {
        "results": gettext("Search results"),
        "found": gettext("Pages found: %(count)s"),
        "similar": gettext("No exact match. Similar pages: %(count)s"),
        "none": gettext("No page found."),
        "all": gettext("Show all pages found: %(count)s"),
    }
    data = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    script = f"globalThis.searchIndex = {data};\n"
    (app.outdir / INDEX).write_text(script, encoding="utf-8")
    (app.doctreedir / KNOWN).write_text(json.dumps(used), encoding="utf-8")


def _known_sections(app):
    """Return the sections of the pages as they were at the last build, by digest."""
    try:
        return json.loads((app.doctreedir / KNOWN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def setup(app):
    app.connect("config-inited", add_static_files)
    app.connect("builder-inited", replace_builtin_search)
    app.connect("html-collect-pages", add_search_page)
    app.connect("html-page-context", drop_builtin_scripts)
    app.connect("build-finished", write_index)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
