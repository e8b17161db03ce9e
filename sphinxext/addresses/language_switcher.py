"""Give every template the links to the same page in each language.

Expects one build per language, side by side in folders named after the ``url`` of
the language. The links are relative, so they work on a server and from a disk.

Configuration:

``language_switcher_languages``
    A list of dictionaries: ``sphinx`` (the value of ``language`` in a build of this
    language), ``url`` (the name of its folder), ``html`` (its lang attribute) and
    ``name`` (what its readers call it). The first is the default.
``html_baseurl``
    Sphinx's own; here, the address at which the folders of the languages are published.
    A start page that picks a language is expected there.

Templates receive ``own_language``, the dictionary of the language that is being built, and
``languages``: the same dictionaries with ``href``, ``current``, and the ``locale`` for link
previews, such as ``ko_KR``. If a language names no territory, the locale has the territory of
most of its speakers. Each dictionary also has ``address``, which is absolute. Templates also
receive ``default_address``, for readers of other languages, and ``pageurl``, the page's own
address, from which themes make the canonical link.
"""

from typing import Any
from urllib.parse import urljoin

from babel.core import get_global, parse_locale
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri


def own_language(app: Sphinx) -> dict[str, Any]:
    """Return the dictionary of the language that is being built."""
    languages = app.config.language_switcher_languages
    name = app.config.language
    own = [x for x in languages if x["sphinx"] == name]
    # A language that is not on the list, such as one for tests, may be built, too.
    other = {**languages[0], "sphinx": name, "url": name, "html": name.replace("_", "-")}
    return own[0] if own else other


def own_address(app: Sphinx) -> str:
    """Return the address at which the pages of the language that is being built are published."""
    return urljoin(app.config.html_baseurl, f"{own_language(app)['url']}/")


def addresses(app: Sphinx, pagename: str) -> dict[str, str]:
    """Return the absolute addresses of a page by lang attribute, and as ``x-default``."""
    base, uri = app.config.html_baseurl, app.builder.get_target_uri(pagename)
    languages = app.config.language_switcher_languages
    by_language = {x["html"]: urljoin(base, f"{x['url']}/{uri}") for x in languages}
    at_start = pagename == app.config.root_doc
    return by_language | {"x-default": base if at_start else by_language[languages[0]["html"]]}


def locale_of(language: str) -> str:
    """Return ``en_US`` for ``en``, and ``zh_CN`` for ``zh_CN``."""
    name, territory, *_ = parse_locale(language)
    if territory is None:
        territory = parse_locale(get_global("likely_subtags")[name])[1]
    return f"{name}_{territory}"


def add_links(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: Any) -> None:
    uri = app.builder.get_target_uri(pagename)
    context["own_language"] = own = own_language(app)
    absolute = addresses(app, pagename)
    context["languages"] = [
        {
            **language,
            "current": language is own,
            "locale": locale_of(language["sphinx"]),
            "href": relative_uri(f"{own['url']}/{uri}", f"{language['url']}/{uri}"),
            "address": absolute[language["html"]],
        }
        for language in app.config.language_switcher_languages
    ]
    context["pageurl"] = own_address(app) + uri
    context["default_address"] = absolute["x-default"]


def setup(app: Sphinx) -> dict:
    app.add_config_value("language_switcher_languages", [], "html")
    app.connect("html-page-context", add_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
