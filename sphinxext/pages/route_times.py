"""Say in a table of routes how long each of them takes to read.

A table of the class ``routes`` has a route in each row: the pages to which the first paragraph of
its last cell links, in Markdown. The table gets a column with the minutes of these pages together,
which ``learning_path`` counts. What other paragraphs of the cell link to is not in the sum.

The texts belong to the message catalog "sphinx", as those of templates do.
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.locale import get_translation

gettext = get_translation("sphinx")


class route_minutes(nodes.Inline, nodes.Element):
    """Where the minutes of ``pages`` go, when those of all pages are known."""


def add_column(app: Sphinx, doctree: nodes.document) -> None:
    for table in doctree.findall(nodes.table):
        if "routes" not in table["classes"]:
            continue
        [group] = table.findall(nodes.tgroup)
        group["cols"] += 1
        group.insert(group.index(next(group.findall(nodes.thead))), nodes.colspec(colwidth=12))
        for row in group.findall(nodes.row):
            if isinstance(row.parent, nodes.thead):
                inline: nodes.Node = nodes.Text(gettext("Minutes"))
            else:
                links = row[-1][0].findall(addnodes.pending_xref)
                inline = route_minutes(pages=[link["reftarget"] for link in links])
            row += nodes.entry("", nodes.paragraph("", "", inline))


def fill_column(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for place in list(doctree.findall(route_minutes)):
        minutes = sum(app.env.metadata[page]["reading_minutes"][0] for page in place["pages"])
        place.replace_self(nodes.Text(str(minutes)))


def setup(app: Sphinx) -> dict:
    app.add_node(route_minutes)
    app.connect("doctree-read", add_column)
    app.connect("doctree-resolved", fill_column)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
