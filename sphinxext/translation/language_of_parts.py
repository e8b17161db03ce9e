"""Mark what a page shows in the source language, so that screen readers pronounce it so.

In a translated page, these get a ``lang`` attribute: text that has no translation yet,
and everything of the classes in ``language_of_parts_classes``, such as the output of
programs.

Configuration: ``language_of_parts_source``, the lang attribute of the source language,
and ``language_of_parts_classes``, a list.
"""

from docutils import nodes
from sphinx.application import Sphinx


def mark(app: Sphinx, doctree: nodes.document) -> None:
    source = app.config.language_of_parts_source
    if app.config.language.replace("_", "-") == source:
        return
    always = set(app.config.language_of_parts_classes)
    for node in doctree.findall(nodes.Element):
        # Sphinx marks what it did not find a translation for.
        if node.get("translated") is False or always.intersection(node.get("classes", [])):
            # Docutils makes a lang attribute of a class with this prefix.
            node["classes"].append(f"language-{source}")


def setup(app: Sphinx) -> dict:
    app.add_config_value("language_of_parts_source", "en", "env", types=[str])
    app.add_config_value("language_of_parts_classes", [], "env", types=[list])
    app.connect("doctree-read", mark)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
