"""Link the caption of a listing to the whole file, if the caption is the name of a file.

The path of the file counts from the folder of ``conf.py``, or from another one.

Configuration: ``linked_captions_address``, where to read the file, with ``{path}`` in it, and
``linked_captions_include``, the other folder, relative to the first, with a slash at its end.
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx


def link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.name == "gettext" or not app.config.linked_captions_address:
        return
    for caption in doctree.findall(nodes.caption):
        name = caption.astext()
        paths = (name, app.config.linked_captions_include + name)
        if path := next((x for x in paths if Path(app.confdir, x).is_file()), None):
            address = app.config.linked_captions_address.format(path=path)
            reference = nodes.reference("", "", *caption.children, refuri=address)
            caption.children = []
            caption += reference


def setup(app: Sphinx) -> dict:
    app.add_config_value("linked_captions_address", "", "html", types=[str])
    app.add_config_value("linked_captions_include", "", "html", types=[str])
    app.connect("doctree-resolved", link)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
