"""Take the images out of style sheets.

Themes write small icons into their style sheets, as ``data:`` addresses. A strict
Content-Security-Policy makes the browser refuse them, with an error message for each.
This extension puts ``none`` in their places. (As files they would not be shown from a
disk: browsers load masks from servers only.) Draw what is missed with ``clip-path``.
"""

import re

from sphinx.application import Sphinx

IMAGE = re.compile(r"""url\((["']?)data:image/.*?\1\)""", re.DOTALL)


def remove_images(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    for path in (app.outdir / "_static").rglob("*.css"):
        style = path.read_text("utf-8")
        without = IMAGE.sub("none", style)
        if without != style:
            path.write_text(without, "utf-8")


def setup(app: Sphinx) -> dict:
    app.connect("build-finished", remove_images)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
