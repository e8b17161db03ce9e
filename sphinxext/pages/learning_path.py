"""List the pages in the order of reading, with the time that each of them takes.

The directive ``learning-path`` lists the pages in the toctrees of its section. It says how long
it takes to read and to run each page, with those below it, and adds the times up. Templates
receive ``times``, a text with those of their page alone.

Reading time is counted from the text that a reader of this language sees: words in
scripts with spaces, characters in Hangul, Han and Kana, and lines of code. The speeds are
about two thirds of what studies find for fiction, since the texts are technical. What is
folded, such as a program or the solution of an exercise, counts in a second time, which is shown
where it is much longer. Long outputs, which are folded too, do not count.

Configuration: ``learning_path_run_seconds``, a dictionary from page to seconds.

The texts belong to the message catalog "sphinx", as those of templates do.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.locale import get_translation
from sphinx.util.docutils import SphinxDirective

gettext = get_translation("sphinx")

LETTER = r"[^\W_\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]"
PER_MINUTE = {
    re.compile(rf"{LETTER}(?:{LETTER}|[_'.-])*"): 150,  # words
    re.compile(r"[\uac00-\ud7a3]"): 340,  # Hangul syllables
    re.compile(r"[\u4e00-\u9fff]"): 250,  # Han characters
    re.compile(r"[\u3040-\u30ff]"): 400,  # Kana
}
CODE_LINES_PER_MINUTE = 16
MUCH_LONGER = 1.2  # times

Times = tuple[int, int, int]  # minutes without and with what is folded, seconds to run


class learning_path(nodes.General, nodes.Element):
    pass


class LearningPath(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return [learning_path()]


def measure(app: Sphinx, doctree: nodes.document) -> None:
    """Note how long this page takes to read; called after the page has been translated."""
    minutes = [0.0, 0.0]
    for node, is_folded in _texts(doctree):
        if isinstance(node, nodes.literal_block):
            lines = [line for line in node.astext().splitlines() if line.strip()]
            minutes[is_folded] += len(lines) / CODE_LINES_PER_MINUTE
        else:
            for pattern, speed in PER_MINUTE.items():
                minutes[is_folded] += len(pattern.findall(str(node))) / speed
    app.env.metadata[app.env.docname]["reading_minutes"] = (
        math.ceil(minutes[False]),
        math.ceil(sum(minutes)),
    )


def _texts(node: Any, is_folded: bool = False) -> Iterator[tuple[nodes.Node, bool]]:
    """Yield the texts and the blocks of code below a node, and whether they are folded."""
    if isinstance(node, nodes.Text):
        yield node, is_folded
    elif isinstance(node, nodes.literal_block):
        if node.get("collapsible") != "closed":  # A long output.
            yield node, is_folded
    elif not isinstance(node, nodes.system_message):
        for child in node.children:
            yield from _texts(child, is_folded or node.get("collapsible") == "closed")


def list_pages(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Replace the directive with the list, when all pages are known."""
    for place in list(doctree.findall(learning_path)):
        toctrees = place.parent.findall(addnodes.toctree)
        pages = [page for toctree in toctrees for _, page in toctree["entries"]]
        times = _sums([_times_below(app, page) for page in pages])
        total = nodes.paragraph("", gettext("In all: %(times)s") % {"times": _said(times)})
        content = [_list(app, docname, pages), total]
        place.replace_self(nodes.container("", *content, classes=["learning-path"]))


def _said(times: Times) -> str:
    """Return times in words; from two hours, in the nearest half hour."""
    reading, whole, running = times
    if reading < 120:
        said = [gettext("about %(minutes)s min to read") % {"minutes": reading}]
    else:
        said = [gettext("about %(hours)s h to read") % {"hours": f"{round(reading / 30) / 2:g}"}]
    if whole > MUCH_LONGER * reading:
        if whole < 120:
            said += [gettext("%(minutes)s min with what is folded") % {"minutes": whole}]
        else:
            hours = f"{round(whole / 30) / 2:g}"
            said += [gettext("%(hours)s h with what is folded") % {"hours": hours}]
    if running >= 120:
        said += [gettext("%(minutes)s min to run") % {"minutes": round(running / 60)}]
    elif running:
        said += [gettext("%(seconds)s s to run") % {"seconds": running}]
    return " · ".join(said)


def _list(app: Sphinx, docname: str, pages: list[str]) -> nodes.Node:
    items = nodes.enumerated_list()
    for page in pages:
        uri = app.builder.get_relative_uri(docname, page)
        title = app.env.titles[page].astext()
        link = nodes.reference("", title, internal=True, refuri=uri)
        times = nodes.inline("", _said(_times_below(app, page)), classes=["times"])
        items += nodes.list_item("", nodes.paragraph("", "", link, nodes.Text(" "), times))
    return items


def _times_below(app: Sphinx, page: str) -> Times:
    """Return the times of a page and of all pages in the toctrees below it."""
    below = [_times_below(app, x) for x in app.env.toctree_includes.get(page, [])]
    return _sums([_times(app, page), *below])


def _sums(times: list[Times]) -> Times:
    reading, whole, running = map(sum, zip(*times, strict=True))
    return reading, whole, running


def _times(app: Sphinx, page: str) -> Times:
    running = app.config.learning_path_run_seconds.get(page, 0)
    return (*app.env.metadata[page]["reading_minutes"], running)


def add_times(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: Any) -> None:
    if doctree is not None:
        context["times"] = _said(_times(app, pagename))


def setup(app: Sphinx) -> dict:
    app.add_config_value("learning_path_run_seconds", {}, "env", types=[dict])
    app.add_node(learning_path)
    app.add_directive("learning-path", LearningPath)
    app.connect("doctree-read", measure)
    app.connect("doctree-resolved", list_pages, priority=400)  # Before toctrees go.
    app.connect("html-page-context", add_times)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
