"""How far the translations are, for readers and for translators.

The directive ``translation-status`` says for each translation how many messages are translated,
fuzzy and untranslated, when a catalog changed last, and since when one is behind the source text.
It says so of all pages together and of each that is not complete. For such a page, it lists each
open message below an anchor, with a link to edit it.

Templates receive ``translation``, the status of their page in their language, with
``anchor`` added: where on the page of the directive its open messages are listed. It is
None for pages without a catalog. They receive ``edit_address``, too.

Configuration: ``translation_status``, a dictionary from language to pages, and from page
to a dictionary with ``edit`` (the address where to edit it) and, for translations,
``translated``, ``fuzzy`` and ``untranslated`` (numbers), ``open`` (a list of dictionaries
with ``state``, ``text`` and ``edit``), ``last_change`` and ``behind_since`` (days such as
2026-01-31, or empty if unknown), and ``days_behind`` (a number or None). The name of the
page for text around all pages is "sphinx". The languages are those of ``language_switcher``, the
source language first.

The texts belong to the message catalog "sphinx", as those of templates do.
"""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.locale import get_translation
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

gettext = get_translation("sphinx")

SHOWN_CHARACTERS = 160  # of an open message
NOT_KNOWN = "–"
WIDTHS = [24, 14, 9, 16, 18, 19]  # of the columns, in percent


class translation_status(nodes.General, nodes.Element):
    """The place for the table of a language."""


class TranslationStatus(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        self.env.metadata[self.env.docname]["translation_status"] = True
        _, *languages = self.config.language_switcher_languages
        return [self.section(language) for language in languages]

    def section(self, language: dict[str, Any]) -> nodes.section:
        name = nodes.inline("", language["name"], classes=[_spoken(language)])
        title = nodes.title("", "", name, translatable=False)
        section = nodes.section("", title, ids=[_anchor(language["sphinx"])])
        section += translation_status(language=language["sphinx"])
        return section


def status_page(env: BuildEnvironment) -> str | None:
    """Return the page that holds the directive, or None."""
    pages = (page for page, data in env.metadata.items() if "translation_status" in data)
    return next(pages, None)


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the tables into their places, when all titles are known."""
    for place in list(doctree.findall(translation_status)):
        language = place["language"]
        pages = app.config.translation_status.get(language, {})
        content = [_table(app, language, pages)]
        for page, status in pages.items():
            if status["open"]:
                content.append(_open_messages(app, language, page, status))
        place.replace_self(content)


def _table(app: Sphinx, language: str, pages: dict[str, Any]) -> nodes.table:
    header = [
        gettext("Page"),
        gettext("Translated"),
        gettext("Fuzzy"),
        gettext("Untranslated"),
        gettext("Last change"),
        gettext("Behind since"),
    ]
    columns = [nodes.colspec(colwidth=width) for width in WIDTHS]
    group = nodes.tgroup("", *columns, cols=len(columns))
    group += nodes.thead("", _row([nodes.Text(text) for text in header]))
    body = nodes.tbody()
    body += _state(nodes.Text(gettext("All pages")), _together(list(pages.values())))
    for page, status in pages.items():
        if status["open"]:
            link = nodes.reference("", _title(app, page), refuri=f"#{_anchor(language, page)}")
            body += _state(link, status)
    group += body
    return nodes.table("", group, classes=["translation-status", "colwidths-given"])


def _together(pages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the status of several pages as if they were one."""
    changes = [x["last_change"] for x in pages]
    late = [(x["behind_since"], x["days_behind"]) for x in pages if x["behind_since"]]
    since, days = min(late, default=("", None))
    numbers = {x: sum(page[x] for page in pages) for x in ("translated", "fuzzy", "untranslated")}
    last = max(changes, default="")
    return {**numbers, "last_change": last, "behind_since": since, "days_behind": days}


def _state(name: nodes.Node, status: dict[str, Any]) -> nodes.row:
    return _row(
        [
            name,
            *(nodes.Text(str(status[x])) for x in ("translated", "fuzzy", "untranslated")),
            nodes.Text(status["last_change"] or NOT_KNOWN),
            nodes.Text(_behind(status)),
        ]
    )


def _row(cells: list[nodes.Node]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", x)) for x in cells))


def _title(app: Sphinx, page: str) -> str:
    if page not in app.env.titles:
        return gettext("Text around the pages")
    return app.env.titles[page].astext()


def _behind(status: dict[str, Any]) -> str:
    if not status["behind_since"]:
        return NOT_KNOWN
    since = {"date": status["behind_since"], "days": status["days_behind"]}
    return gettext("%(date)s (%(days)s days)") % since


def _open_messages(
    app: Sphinx, language: str, page: str, status: dict[str, Any]
) -> nodes.container:
    # Nobody looks for a page by what is not on it yet.
    listing = nodes.container("", nodes.rubric("", _title(app, page)), classes=["unsearched"])
    listing["ids"].append(_anchor(language, page))
    states = {"fuzzy": gettext("Fuzzy"), "untranslated": gettext("Untranslated")}
    source_language, *_ = app.config.language_switcher_languages
    messages = nodes.bullet_list()
    for message in status["open"]:
        text = " ".join(message["text"].split())
        if len(text) > SHOWN_CHARACTERS:
            text = text[: SHOWN_CHARACTERS - 1] + "…"
        link = nodes.reference("", states[message["state"]], refuri=message["edit"])
        # It is shown as it is written, markup and all.
        source = nodes.literal("", text, classes=[_spoken(source_language)])
        messages += nodes.list_item("", nodes.paragraph("", "", link, nodes.Text(" "), source))
    listing += messages
    return listing


def _spoken(language: dict[str, Any]) -> str:
    """Return the class of which docutils makes the attribute lang."""
    return f"language-{language['html']}"


def _anchor(language: str, page: str = "") -> str:
    return nodes.make_id(f"translation {language} {page}")


def add_status(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: Any) -> None:
    pages = app.config.translation_status.get(app.config.language, {})
    status = pages.get(pagename)
    context["edit_address"] = status["edit"] if status else None
    context["translation"] = None
    if status and "translated" in status:
        anchor = f"#{_anchor(app.config.language, pagename)}"
        listing = status_page(app.env)
        target = app.builder.get_target_uri(listing) if listing else ""
        here = app.builder.get_target_uri(pagename)
        address = relative_uri(here, target) + anchor if listing else None
        context["translation"] = {**status, "anchor": address}


def setup(app: Sphinx) -> dict:
    app.add_config_value("translation_status", {}, "", types=[dict])
    app.setup_extension("sphinxext.addresses.language_switcher")
    app.add_node(translation_status)
    app.add_directive("translation-status", TranslationStatus)
    app.connect("doctree-resolved", fill)
    app.connect("html-page-context", add_status)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
