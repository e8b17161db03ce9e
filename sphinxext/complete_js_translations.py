"""Fill the gaps in the translations that Sphinx's JavaScript uses.

Sphinx ships the texts of its search page as one file per language, in which some
are missing; the page then shows nothing at all in their place. This extension takes
what is missing from the project's own message catalog "sphinx".

Sphinx turns the rule for plural forms into a function in the browser, which a strict
Content-Security-Policy forbids; here the file has the function itself.
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
    messages = json.dumps(catalog["messages"], indent=4, sort_keys=True)
    path.write_text(
        f"Object.assign(Documentation.TRANSLATIONS, {messages});\n"
        f"Documentation.PLURAL_EXPR = (n) => ({catalog['plural_expr']});\n"
        f"Documentation.LOCALE = {json.dumps(catalog['locale'])};\n"
    )


def setup(app):
    app.connect("build-finished", complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
