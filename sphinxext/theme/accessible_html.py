"""Make the HTML of Sphinx accessible with a keyboard and with a screen reader.

Listings and wide tables scroll sideways on a narrow screen; the keyboard can scroll them, too.
The caption of a table of contents is marked as a heading; it also gets a level. A link to a
heading is only a paragraph sign; it gets a name. The theme, furo, names the switches of its menu in
English; they get the name in the language of the page.

The texts belong to the message catalog "sphinx", as those of templates do.
"""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.locale import get_translation
from sphinx.writers.html5 import HTML5Translator

gettext = get_translation("sphinx")

SWITCH = re.compile(r'aria-label="Toggle navigation of ([^"]*)"')
# The classes of boxes that scroll.
SCROLLING = {"table-wrapper"}


class AccessibleTranslator(HTML5Translator):
    def starttag(
        self,
        node: nodes.Element,
        tagname: str,
        suffix: str = "\n",
        empty: bool = False,
        **attributes: Any,
    ) -> str:
        if attributes.get("ROLE") == "heading":
            attributes["ARIA-LEVEL"] = "2"
        scrolls = SCROLLING.intersection(node.get("classes", []))
        if scrolls:
            node["ids"] = []  # Furo copies those of the table in it.
        if scrolls or tagname == "pre":
            attributes["TABINDEX"] = "0"
        return super().starttag(node, tagname, suffix, empty, **attributes)

    def visit_literal_block(self, node: nodes.literal_block) -> None:
        before = len(self.body)
        try:
            super().visit_literal_block(node)
        finally:  # It ends with an exception; Pygments has written the box.
            for index in range(before, len(self.body)):
                html = self.body[index]
                self.body[index] = html.replace("<pre>", '<pre tabindex="0">', 1)

    def add_permalink_ref(self, node: nodes.Element, title: str) -> None:
        before = len(self.body)
        super().add_permalink_ref(node, title)
        name = f'aria-label="{self.attval(title)}" title='
        for index in range(before, len(self.body)):
            self.body[index] = self.body[index].replace("title=", name, 1)


def name_switches(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    name = gettext("Toggle navigation of %(title)s")
    menu = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = SWITCH.sub(
        lambda match: f'aria-label="{name % {"title": match[1]}}"', menu
    )


def setup(app: Sphinx) -> dict:
    app.set_translator("html", AccessibleTranslator)
    app.connect("html-page-context", name_switches, priority=900)  # After furo.
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
