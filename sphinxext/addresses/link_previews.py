"""Give templates the locale of each language for link previews.

OpenGraph needs a language with a territory, such as ``ko_KR``. Each dictionary of
``languages``, which ``language_switcher`` gives to templates, receives it as ``locale``. If a
language names no territory, the locale has the territory of most of its speakers.
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
