"""Say on the page which code was not executed, and why.

The directive ``not-executed`` holds a reason and listings. The page shows them in a box
with a label. With the option ``partly``, the reason is about some lines only. If these are whole
lines, ``code_provenance`` highlights them::

    .. not-executed::
       :partly:

       The rest needs a machine with a GPU.

       .. literalinclude:: /gpu.py

``code_provenance`` reads the reasons, warns if one is missing, and demands no proof for these
listings, unless they are executed ``partly``.

The labels "Not executed" and "Executed in part" belong to the message catalog "sphinx", as the
texts of templates do; the reason belongs to that of the page. The box has the class
``not-executed``, and the label the class ``label``.
"""

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.locale import get_translation
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

gettext = get_translation("sphinx")


class not_executed(nodes.General, nodes.Element):
    """A reason, and listings of which nothing or only a part was executed."""


class NotExecuted(SphinxDirective):
    has_content = True
    option_spec = {"partly": directives.flag}

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        node = not_executed("", partly="partly" in self.options)
        self.set_source_info(node)
        node += self.parse_content_to_nodes()
        return [node]


def ancestors(node: Any) -> Iterator[Any]:
    """Yield a node, and those around it."""
    while node is not None:
        yield node
        node = node.parent


def facts(listing: nodes.Element) -> dict[str, Any]:
    """Return what the directive around a listing says about it; nothing if there is none.

    The dictionary has ``not_executed``, the reason in one line, and ``partly``.
    """
    for directive in (x for x in ancestors(listing) if isinstance(x, not_executed)):
        paragraphs = [_text(x) for x in directive.children if isinstance(x, nodes.paragraph)]
        reason = " ".join(" ".join(paragraphs).split())
        return {"not_executed": reason, "partly": directive["partly"]}
    return {}


def _text(paragraph: nodes.Element) -> str:
    """Return the text of a paragraph, with its literals between backquotes."""
    return "".join(
        f"`{x.astext()}`" if isinstance(x, nodes.literal) else x.astext()
        for x in paragraph.children
    )


def visit_html(translator: HTML5Translator, node: Any) -> None:
    label = gettext("Executed in part") if node["partly"] else gettext("Not executed")
    translator.body.append(f'<div class="not-executed"><p class="label">{label}</p>\n')


def depart_html(translator: HTML5Translator, node: Any) -> None:
    translator.body.append("</div>\n")


def setup(app: Sphinx) -> dict:
    app.add_node(not_executed, html=(visit_html, depart_html))
    app.add_directive("not-executed", NotExecuted)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
