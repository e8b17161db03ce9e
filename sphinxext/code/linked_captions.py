"""Link the caption of a listing to the whole file, if the caption is the name of a file.

The path of the file counts from the folder of ``conf.py``.

Configuration: ``linked_captions_address``, where to read the file, with ``{path}`` in it.
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx


def link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.name == "gettext" or not app.config.linked_captions_address:
        return
    for caption in doctree.findall(nodes.caption):
        path = caption.astext()
        if (Path(app.confdir, path)).is_file():
            address = app.config.linked_captions_address.format(path=path)
            reference = nodes.reference("", "", *caption.children, refuri=address)
            caption.children = []
            caption += reference


def setup(app: Sphinx) -> dict:
    app.add_config_value("linked_captions_address", "", "html", types=[str])
    app.connect("doctree-resolved", link)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
