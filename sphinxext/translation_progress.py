"""Tell templates how much of a page is translated.

Templates receive ``translated_percent``: 100 for a page that is complete, also in the
source language. Fuzzy messages do not count; the page shows their source text.
"""

from docutils import nodes
from sphinx import addnodes


def add_percentage(app, pagename, templatename, context, doctree):
    # Sphinx marks each translatable node, but never a table of contents as translated.
    marks = [
        node["translated"]
        for node in (doctree.findall(nodes.Element) if doctree is not None else [])
        if "translated" in node and not isinstance(node, addnodes.toctree)
    ]
    context["translated_percent"] = 100 * sum(marks) // len(marks) if marks else 100


def setup(app):
    app.connect("html-page-context", add_percentage)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
