"""Keep the compiled templates with the doctrees: compiling them takes longer than a page.

Jinja notices a change of a template, but not a change of an extension that rewrites templates.
After such a change, the project must remove the doctrees, and this folder with them.
"""

from jinja2 import FileSystemBytecodeCache


def keep(app):
    templates = getattr(app.builder, "templates", None)
    if templates is not None:
        folder = app.doctreedir / "templates"
        folder.mkdir(parents=True, exist_ok=True)
        templates.environment.bytecode_cache = FileSystemBytecodeCache(str(folder))


def setup(app):
    app.connect("builder-inited", keep)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
