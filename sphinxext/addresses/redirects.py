"""Keep the addresses of pages that were renamed or merged into others.

``redirects_file``, relative to the sources, is a CSV table with the columns ``old`` and
``new``, each the name of a page without suffix. For each row, a page is written at the
old address that leads to the new one, with and without a browser that follows.

A row is refused with a warning if its new page does not exist, or its old one still does:
so no redirect leads to another, or in a circle. Rows are sorted and unique.

The text belongs to the message catalog "sphinx", as that of templates does. Needs the
configuration of ``language_switcher``, with ``html_baseurl``.
"""

import csv
from html import escape
from importlib.util import resolve_name

from sphinx.locale import get_translation
from sphinx.util import logging
from sphinx.util.osutil import ensuredir, relative_uri

from .language_switcher import addresses, own_language

logger = logging.getLogger(__name__)
gettext = get_translation("sphinx")

PAGE = """\
<!doctype html>
<html lang="{language}">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="robots" content="noindex">
  <title>{title}</title>
  <link rel="canonical" href="{address}">
  <meta http-equiv="refresh" content="0; url={link}">
</head>
<body>
  <p>{moved} <a href="{link}">{title}</a></p>
</body>
</html>
"""


def read(app, env):
    """Note the rows of the table that can be used, and warn of all others."""
    app.redirects = []
    if not app.config.redirects_file:
        return
    path = app.srcdir / app.config.redirects_file
    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    if header != ["old", "new"] or any(len(row) != 2 for row in rows):
        logger.warning("the columns are not old,new", location=f"{path}:1")
        return
    if rows != sorted(rows):
        logger.warning("the rows are not sorted", location=f"{path}:1")
    for number, (old, new) in enumerate(rows, 2):
        place = f"{path}:{number}"
        if old in env.found_docs:
            logger.warning("%s is a page, it cannot lead away", old, location=place)
        elif new not in env.found_docs:
            logger.warning("%s is no page to lead to", new, location=place)
        elif old in dict(app.redirects):
            logger.warning("%s is there twice", old, location=place)
        else:
            app.redirects.append((old, new))


def write(app, exception):
    if exception or app.builder.format != "html":
        return
    language = own_language(app)["html"]
    for old, new in app.redirects:
        uri = app.builder.get_target_uri(old)
        page = PAGE.format(
            language=language,
            title=escape(app.env.titles[new].astext()),
            address=escape(addresses(app, new)[language]),
            link=escape(relative_uri(uri, app.builder.get_target_uri(new))),
            moved=escape(gettext("This page has moved:")),
        )
        target = app.outdir / uri
        ensuredir(target.parent)
        target.write_text(page)


def setup(app):
    app.setup_extension(resolve_name(".language_switcher", __package__))
    app.add_config_value("redirects_file", None, "html", types=[str])
    app.connect("env-updated", read)  # In each build, other than the check of consistency.
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
