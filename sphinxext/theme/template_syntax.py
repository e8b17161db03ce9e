"""Report a mistake in the project's own templates with its file and line.

Sphinx stops at the first page that uses such a template, and says which page that is, but
not which template. Here, all HTML templates of ``templates_path`` are parsed beforehand.
"""

from pathlib import Path

from jinja2 import Environment, TemplateSyntaxError
from sphinx.application import Sphinx
from sphinx.errors import ThemeError


def parse_all(app: Sphinx) -> None:
    syntax = Environment(extensions=["jinja2.ext.i18n"])
    for folder in app.config.templates_path:
        for path in sorted(Path(app.confdir, folder).rglob("*.html")):
            try:
                syntax.parse(path.read_text(encoding="utf-8"))
            except TemplateSyntaxError as error:
                raise ThemeError(f"{path}:{error.lineno}: {error.message}") from None


def setup(app: Sphinx) -> dict:
    app.connect("builder-inited", parse_all)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
