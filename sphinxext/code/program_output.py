"""Show what a program printed as its output, not as more code.

Literal blocks of sphinx-gallery's class for output get a label for eyes and screen readers. Long
ones are folded: readers open them.

The texts belong to the message catalog "sphinx", as those of templates do.
"""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.locale import get_translation
from sphinx.writers.html5 import HTML5Translator

gettext = get_translation("sphinx")

OUTPUT_CLASS = "sphx-glr-script-out"
MOST_LINES = 16  # of an output that is not folded


class program_output(nodes.General, nodes.Element):
    """A box around a literal block; ``lines`` is its length if it is folded."""


def fold(app: Sphinx, doctree: nodes.document) -> None:
    """Mark long outputs as admonitions are marked, for whoever counts what readers see."""
    for block in doctree.findall(nodes.literal_block):
        if OUTPUT_CLASS in block["classes"] and len(_lines(block)) > MOST_LINES:
            block["collapsible"] = "closed"


def label(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for block in list(doctree.findall(nodes.literal_block)):
        if OUTPUT_CLASS in block["classes"]:
            box = program_output(lines=len(_lines(block)) if "collapsible" in block else None)
            block.replace_self(box)
            box += block


def _lines(block: nodes.literal_block) -> list[str]:
    return block.astext().splitlines()


def visit_html(translator: HTML5Translator, node: Any) -> None:
    if node["lines"]:
        title = gettext("Output, %(lines)s lines") % {"lines": node["lines"]}
        translator.body.append(f'<details class="program-output"><summary>{title}</summary>\n')
    else:
        title = gettext("Output")
        translator.body.append(f'<div class="program-output"><p class="label">{title}</p>\n')


def depart_html(translator: HTML5Translator, node: Any) -> None:
    translator.body.append("</details>\n" if node["lines"] else "</div>\n")


def setup(app: Sphinx) -> dict:
    app.add_node(program_output, html=(visit_html, depart_html))
    app.connect("doctree-read", fold, priority=400)  # Before ``learning_path`` counts.
    app.connect("doctree-resolved", label)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
