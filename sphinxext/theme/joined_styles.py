"""Join the style sheets of a folder into one, which a page loads with one request.

Configuration:

``joined_styles``
    A dictionary from the name of a style sheet, as in ``html_css_files``, to the folder with
    its parts, relative to the folder of ``conf.py``. The files ``*.css`` of the folder are
    joined in alphabetical order. Default ``{}``.
"""

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.errors import ConfigError


def join(app: Sphinx, builder: Builder) -> None:
    # Before any page is written: their links hold a digest of the sheet.
    if builder.format != "html":
        return
    for name, folder in app.config.joined_styles.items():
        parts = sorted(Path(app.confdir, folder).glob("*.css"))
        if not parts:
            raise ConfigError(f"joined_styles: no style sheets in {folder}")
        sheet = Path(app.outdir, "_static", name)
        sheet.parent.mkdir(parents=True, exist_ok=True)
        sheet.write_text("\n".join(x.read_text(encoding="utf-8") for x in parts), encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.add_config_value("joined_styles", {}, "html", types=[dict])
    app.connect("write-started", join)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
