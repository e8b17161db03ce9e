"""Write a notebook from the page of a sample: its text, with the code in between.

This module has no ``setup``: it is the part of ``sample_downloads`` that knows notebooks.
"""

import json
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.environment import BuildEnvironment

from ..text.markdown_text import Markdown

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# The classes of what the code has put on the page: of sphinx-gallery, and tables of results.
OUTPUTS = {"sphx-glr-script-out", "result-table"}


def notebook(
    env: BuildEnvironment,
    doctree: nodes.document,
    *,
    address: str,
    note: str,
    blocks: dict[int, str],
) -> str:
    """Return the text of the notebook, which is JSON.

    ``address`` is where the page is published, and ``note`` a text for below its title.
    ``blocks`` maps numbers to the blocks of code of the script. A listing of the page whose
    attribute ``block_of_sample`` is such a number becomes that block; a block that the page
    does not show comes before the next one that it shows. Outputs are left out.
    """
    markdown = Markdown(env, address)
    blocks = dict(blocks)
    cells: list[tuple[str, str]] = []
    text: list[str] = []

    def end_text() -> None:
        if text:
            cells.append(("markdown", "\n\n".join(text)))
            text.clear()

    def add_code_before(end: int | None) -> None:
        for number in sorted(x for x in blocks if end is None or x < end):
            if source := blocks.pop(number).strip("\n"):
                end_text()
                cells.append(("code", source))

    for level, node in _flat(doctree):
        number = node.get("block_of_sample")
        if number is not None:
            end_text()
            add_code_before(number + 1)
        elif isinstance(node, nodes.title):
            text.append(markdown.title(node, level))
            if level == 1:
                text.append("\n".join(f"> {line}  " for line in note.split("\n")))
        elif not OUTPUTS.intersection(node.get("classes", [])):
            text += filter(None, [markdown.block(node)])
    end_text()
    add_code_before(None)
    return _json(cells)


def _flat(node: Any, level: int = 0) -> Iterator[tuple[int, Any]]:
    """Yield each node in the sections of a document, with the level of its section."""
    for child in node.children:
        if isinstance(child, nodes.section):
            yield from _flat(child, level + 1)
        else:
            yield level, child


def _json(cells: list[tuple[str, str]]) -> str:
    notebook_cells = []
    for number, (kind, source) in enumerate(cells, 1):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
        cell["source"] = source.splitlines(keepends=True)
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        notebook_cells.append(cell)
    whole = {"cells": notebook_cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
