"""Change a theme's templates in places for which they offer no block.

``template_edits`` is a dictionary from the name of a template to pairs of a text in it
and its replacement. The build fails if the theme's template does not contain the text,
because a new version of the theme has changed it.

Edits come before anything else reads the template, so their labels are translated wherever
the theme's are. Templates of the project itself are left unchanged.
"""

from pathlib import Path

from jinja2.ext import Extension
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ThemeError


class TemplateEdits(Extension):
    """Rewrites a template's source before Jinja parses it."""

    priority = 10  # The first of all extensions.

    def configure(self, config: Config, confdir: Path) -> None:
        self.edits = config.template_edits
        self.own_folders = [confdir / folder for folder in config.templates_path]

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        if any(Path(filename or "").is_relative_to(folder) for folder in self.own_folders):
            return source
        name = (name or "").removeprefix("!")
        for text, replacement in self.edits.get(name, []):
            if text not in source:
                raise ThemeError(f"template_edits: {name} of the theme has no {text!r}")
            source = source.replace(text, replacement)
        return source


def extend_templates(app: Sphinx) -> None:
    if templates := getattr(app.builder, "templates", None):
        environment = templates.environment
        environment.add_extension(TemplateEdits)
        environment.extensions[TemplateEdits.identifier].configure(app.config, app.confdir)


def setup(app: Sphinx) -> dict:
    app.add_config_value("template_edits", {}, "html", types=[dict])
    app.connect("builder-inited", extend_templates)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
