"""Tell templates what pages call the locale of each language in link previews.

OpenGraph wants a language with a territory: ``ko_KR``. Each dictionary of ``languages``,
which ``language_switcher`` gives to templates, receives it as ``locale``. It is that of
most of the language's speakers where the language does not name one.
"""

from importlib.util import resolve_name

from babel.core import get_global, parse_locale


def locale_of(language):
    """Return ``en_US`` for ``en``, and ``zh_CN`` for ``zh_CN``."""
    name, territory, *_ = parse_locale(language)
    if territory is None:
        territory = parse_locale(get_global("likely_subtags")[name])[1]
    return f"{name}_{territory}"


def add_locales(app, pagename, templatename, context, doctree):
    for language in context["languages"]:
        language["locale"] = locale_of(language["sphinx"])


def setup(app):
    app.setup_extension(resolve_name(".language_switcher", __package__))
    app.connect("html-page-context", add_locales)  # After those of the switcher.
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
