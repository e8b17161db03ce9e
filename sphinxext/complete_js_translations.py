"""Fill the gaps in the translations that Sphinx's JavaScript uses.

Sphinx ships the texts of its search page as one file per language, in which some
are missing; the page then shows nothing at all in their place. This extension takes
what is missing from the project's own message catalog "sphinx".
"""

import json

from sphinx.locale import get_translation


def complete(app, exception):
    path = app.outdir / "_static" / "translations.js"
    if exception or not path.is_file():
        return
    script = path.read_text()
    start, end = script.index("{"), script.rindex("}") + 1
    catalog = json.loads(script[start:end])
    gettext = get_translation("sphinx")
    for message, translation in catalog["messages"].items():
        found = str(gettext(message))
        if not any(translation) and found != message:
            # A message with plural forms is a list of them.
            plural = isinstance(translation, list)
            catalog["messages"][message] = [found] if plural else found
    body = json.dumps(catalog, indent=4, sort_keys=True)
    path.write_text(script[:start] + body + script[end:])


def setup(app):
    app.connect("build-finished", complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
