"""Name the translators of each language.

The directive ``translators`` is a list of the languages with the names of their translators, or
nothing if nobody is named.

Configuration: ``translators``, a dictionary from language to names. The languages are those of
``language_switcher``.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Translators(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        items = nodes.bullet_list()
        for language in self.config.language_switcher_languages:
            if names := self.config.translators.get(language["sphinx"]):
                spoken = f"language-{language['html']}"  # Docutils makes a lang of it.
                text = nodes.inline("", f"{language['name']}: {', '.join(names)}", classes=[spoken])
                items += nodes.list_item("", nodes.paragraph("", "", text, translatable=False))
        return [items] if items.children else []


def setup(app: Sphinx) -> dict:
    app.add_config_value("translators", {}, "env", types=[dict])
    app.setup_extension("sphinxext.addresses.language_switcher")
    app.add_directive("translators", Translators)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
