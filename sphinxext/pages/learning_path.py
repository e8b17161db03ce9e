"""List the pages in the order of reading, with the time that each of them takes.

The directive ``learning-path`` lists the pages in the toctrees of its section. It says how long
it takes to read and to run each page, with those below it, and adds the times up. Templates
receive ``reading_minutes`` and ``run_seconds`` of their page alone.

Reading time is counted from the text that a reader of this language sees: words in
scripts with spaces, characters in Hangul and Han, and lines of code. The speeds are
about two thirds of what studies find for fiction, since the texts are technical. What is
folded, such as the solution of an exercise or a long output, is not counted.

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

PER_MINUTE = {
    re.compile(r"[A-Za-z0-9][\w'.-]*", re.ASCII): 150,  # words
    re.compile(r"[\uac00-\ud7a3]"): 340,  # Hangul syllables
    re.compile(r"[\u4e00-\u9fff]"): 250,  # Han characters
}
CODE_LINES_PER_MINUTE = 16


class learning_path(nodes.General, nodes.Element):
    pass


class LearningPath(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return [learning_path()]


def measure(app: Sphinx, doctree: nodes.document) -> None:
    """Note how long this page takes to read; called after the page has been translated."""
    minutes = 0.0
    for node in _unfolded(doctree):
        if isinstance(node, nodes.literal_block):
            lines = [line for line in node.astext().splitlines() if line.strip()]
            minutes += len(lines) / CODE_LINES_PER_MINUTE
        elif isinstance(node, nodes.Text):
            for pattern, speed in PER_MINUTE.items():
                minutes += len(pattern.findall(str(node))) / speed
    app.env.metadata[app.env.docname]["reading_minutes"] = math.ceil(minutes)


def _unfolded(node: Any) -> Iterator[nodes.Node]:
    """Yield the texts below a node that a reader sees at first, and the blocks of code."""
    if isinstance(node, nodes.Text):
        yield node
    elif isinstance(node, nodes.system_message) or node.get("collapsible") == "closed":
        return
    elif isinstance(node, nodes.literal_block):
        yield node
    else:
        for child in node.children:
            yield from _unfolded(child)


def list_pages(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Replace the directive with the list, when all pages are known."""
    for place in list(doctree.findall(learning_path)):
        toctrees = place.parent.findall(addnodes.toctree)
        pages = [page for toctree in toctrees for _, page in toctree["entries"]]
        reading, running = zip(*(_times_below(app, page) for page in pages), strict=True)
        total = nodes.paragraph("", _total(sum(reading), sum(running)))
        content = [_list(app, docname, pages), total]
        place.replace_self(nodes.container("", *content, classes=["learning-path"]))


def _total(reading: int, running: int) -> str:
    """Return both times, in the nearest half hours and minutes; of short times, more than 0."""
    hours, minutes = max(1, round(reading / 30)) / 2, max(1, round(running / 60))
    times = [gettext("In all: about %(hours)s h to read") % {"hours": f"{hours:g}"}]
    if running:
        times.append(gettext("%(minutes)s min to run") % {"minutes": minutes})
    return " · ".join(times)


def _list(app: Sphinx, docname: str, pages: list[str]) -> nodes.Node:
    items = nodes.enumerated_list()
    for page in pages:
        uri = app.builder.get_relative_uri(docname, page)
        title = app.env.titles[page].astext()
        link = nodes.reference("", title, internal=True, refuri=uri)
        reading, running = _times_below(app, page)
        times = [gettext("about %(minutes)s min to read") % {"minutes": reading}]
        if running:
            times.append(gettext("%(seconds)s s to run") % {"seconds": running})
        times = nodes.inline("", " · ".join(times), classes=["times"])
        items += nodes.list_item("", nodes.paragraph("", "", link, nodes.Text(" "), times))
    return items


def _times_below(app: Sphinx, page: str) -> tuple[int, int]:
    """Return the times of a page and of all pages in the toctrees below it."""
    below = [_times_below(app, x) for x in app.env.toctree_includes.get(page, [])]
    reading, running = zip(_times(app, page), *below, strict=True)
    return sum(reading), sum(running)


def _times(app: Sphinx, page: str) -> tuple[int, int]:
    """Return the minutes to read the page, and the seconds to run it or 0."""
    reading = app.env.metadata[page]["reading_minutes"]
    return reading, app.config.learning_path_run_seconds.get(page, 0)


def add_times(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: Any) -> None:
    if doctree is not None:
        context["reading_minutes"], context["run_seconds"] = _times(app, pagename)


def setup(app: Sphinx) -> dict:
    app.add_config_value("learning_path_run_seconds", {}, "env", types=[dict])
    app.add_node(learning_path)
    app.add_directive("learning-path", LearningPath)
    app.connect("doctree-read", measure)
    app.connect("doctree-resolved", list_pages, priority=400)  # Before toctrees go.
    app.connect("html-page-context", add_times)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
