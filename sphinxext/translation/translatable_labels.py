"""Make labels that a theme wrote into its templates in plain English translatable.

Themes translate their visible text, and tend to forget what only assistive
technology reads: ``aria-label="Toggle table of contents"`` or an SVG's
``<title>Menu</title>``. This extension passes such literals through gettext while
Jinja loads the templates. They belong to the message catalog "sphinx", like all
other text in templates, and Sphinx's gettext builder extracts them with the rest.
"""

import re

from jinja2.ext import Extension
from sphinx.application import Sphinx

ATTRIBUTE = re.compile(r'(\b(?:aria-label|title|alt)=)"([^"{}<>]*[A-Za-z][^"{}<>]*)"')
TITLE = re.compile(r"<title>([^{}<>]*[A-Za-z][^{}<>]*)</title>")


class TranslatableLabels(Extension):
    """Rewrites a template's source before Jinja parses it."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        source = ATTRIBUTE.sub(r"""\1"{{ _('\2') }}" """.rstrip(), source)
        return TITLE.sub(r"<title>{{ _('\1') }}</title>", source)


def extend_templates(app: Sphinx) -> None:
    templates = getattr(app.builder, "templates", None)
    if templates is not None:
        templates.environment.add_extension(TranslatableLabels)


def setup(app: Sphinx) -> dict:
    app.connect("builder-inited", extend_templates)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
