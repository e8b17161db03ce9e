"""Change a theme's templates in places for which they offer no block.

``template_edits`` is a dictionary from the name of a template to pairs of a text in it
and its replacement. The build fails if the theme's template does not contain the text,
because a new version of the theme has changed it.

Edits come before anything else reads the template, so their labels are translated wherever
the theme's are. Templates of the project itself are left unchanged.
"""

from pathlib import Path

from jinja2.ext import Extension
from sphinx.errors import ThemeError


class TemplateEdits(Extension):
    """Rewrites a template's source before Jinja parses it."""

    priority = 10  # The first of all extensions.
    edits: dict = {}
    own_folders: list = []

    def preprocess(self, source, name, filename=None):
        name = (name or "").removeprefix("!")
        path = Path(filename or "")
        own = any(path.is_relative_to(folder) for folder in self.own_folders)
        for text, replacement in [] if own else self.edits.get(name, []):
            if text not in source:
                raise ThemeError(f"template_edits: {name} of the theme has no {text!r}")
            source = source.replace(text, replacement)
        return source


def extend_templates(app):
    templates = getattr(app.builder, "templates", None)
    if templates is not None:
        TemplateEdits.edits = app.config.template_edits
        TemplateEdits.own_folders = [app.confdir / folder for folder in app.config.templates_path]
        templates.environment.add_extension(TemplateEdits)


def setup(app):
    app.add_config_value("template_edits", {}, "html", types=[dict])
    app.connect("builder-inited", extend_templates)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
