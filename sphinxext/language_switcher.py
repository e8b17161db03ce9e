"""Give every template the links to the same page in the other languages.

Expects one build per language, side by side in folders named after the ``url`` of
the language. The links are relative, so they work on a server and from a disk.

Configuration:

``language_switcher_languages``
    A list of dictionaries: ``sphinx`` (the value of ``language`` in a build of this
    language), ``url`` (the name of its folder), ``html`` (its lang attribute) and
    ``name`` (what its readers call it).

Templates receive ``languages``: the same dictionaries with ``href`` and ``current``.
"""

from sphinx.util.osutil import relative_uri


def add_links(app, pagename, templatename, context, doctree):
    languages = app.config.language_switcher_languages
    own = {language["sphinx"]: language["url"] for language in languages}
    # A language that is not on the list, such as one for tests, may be built, too.
    folder = own.get(app.config.language, app.config.language)
    here = f"{folder}/{app.builder.get_target_uri(pagename)}"
    context["languages"] = [
        {
            **language,
            "current": language["sphinx"] == app.config.language,
            "href": relative_uri(
                here, f"{language['url']}/{app.builder.get_target_uri(pagename)}"
            ),
        }
        for language in languages
    ]


def setup(app):
    app.add_config_value("language_switcher_languages", [], "html")
    app.connect("html-page-context", add_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
