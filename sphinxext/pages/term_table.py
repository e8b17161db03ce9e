"""Show a glossary of several languages as a table, made from one file.

The directive ``term-table`` takes the path of a CSV file, relative to the page. Its columns
are ``term``; one for each language, named as Sphinx names it; for some of these languages
``avoid_LANGUAGE``, words not to use, with "|" between them; and ``note``. Each row of the
table has an anchor, ``term-NAME``. Notes are messages of the page's catalog; terms are not
translated, since they are the translations.

Configuration: ``term_table_proposal``, the address to which readers send a proposal.
The languages are those of ``language_switcher``, the source language first.

The texts belong to the message catalog "sphinx", as those of templates do.
"""

import csv
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.locale import get_translation
from sphinx.util.docutils import SphinxDirective

from ..translation.plain_messages import plain_messages, translations

gettext = get_translation("sphinx")


class term_table(nodes.General, nodes.Element):
    """The place for the table. Its children are the notes."""


class TermTable(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        _, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(path)
        try:
            with open(path, encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            if not rows:
                raise KeyError("no rows")
            if "term" not in rows[0]:
                raise KeyError("term")
            node = term_table("", rows=rows)
            self.set_source_info(node)
            notes = [row["note"] for row in rows if row["note"]]
            node += plain_messages(notes, node, prose=notes)
        except (OSError, UnicodeDecodeError, KeyError) as error:
            raise self.error(f"{Path(path).name} is not a table of terms: {error!r}") from None
        return [node]


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.name == "gettext":
        return  # This builder collects the messages after this.
    for place in list(doctree.findall(term_table)):
        notes = translations(place.children)
        link = nodes.reference("", gettext("Propose a term"), refuri=app.config.term_table_proposal)
        place.replace_self([_table(app, place["rows"], notes), nodes.paragraph("", "", link)])


def _table(app: Sphinx, rows: list[dict[str, str]], notes: dict[str, str]) -> nodes.table:
    source, *others = app.config.language_switcher_languages
    languages = [x for x in others if x["sphinx"] in rows[0]]
    header = [_in_language(source, source["name"])]
    header += [_in_language(language, language["name"]) for language in languages]
    header.append([nodes.Text(gettext("Remark"))])
    # Two parts for each language, three for the note.
    widths = [2] * (len(header) - 1) + [3]
    columns = [nodes.colspec(colwidth=width) for width in widths]
    group = nodes.tgroup("", *columns, cols=len(columns))
    group += nodes.thead("", _row(header))
    body = nodes.tbody()
    for row in rows:
        cells = [_in_language(source, row["term"])]
        cells += [_translation(language, row) for language in languages]
        cells.append([nodes.Text(notes.get(row["note"], ""))])
        body += _row(cells, ids=[nodes.make_id(f"term {row['term']}")])
    group += body
    return nodes.table("", group, classes=["term-table", "colwidths-given"])


def _translation(language: dict[str, Any], row: dict[str, str]) -> list[nodes.Node]:
    cell = _in_language(language, row[language["sphinx"]])
    avoided = [x for x in row.get(f"avoid_{language['sphinx']}", "").split("|") if x]
    if avoided:
        words = [child for x in avoided for child in (*_in_language(language, x), nodes.Text(" "))]
        cell += [nodes.Text(" "), nodes.inline("", gettext("not:"), *words[:-1], classes=["avoid"])]
    return cell


def _in_language(language: dict[str, Any], text: str) -> list[nodes.Node]:
    # docutils makes the attribute lang of this class.
    return [nodes.inline("", text, classes=[f"language-{language['html']}"])]


def _row(cells: list[list[nodes.Node]], **attributes: Any) -> nodes.row:
    return nodes.row(
        "", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells), **attributes
    )


def setup(app: Sphinx) -> dict:
    app.setup_extension("sphinxext.translation.plain_messages")
    app.setup_extension("sphinxext.addresses.language_switcher")
    app.add_config_value("term_table_proposal", "", "env", types=[str])
    app.add_node(term_table)
    app.add_directive("term-table", TermTable)
    app.connect("doctree-resolved", fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
