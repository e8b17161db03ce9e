"""Find out where the listings of all pages come from, and what executed them.

Every listing must be text of a file, and something that the project names must execute that
file. A build of HTML warns of each listing without such a proof, and fails if warnings are
errors: ``sphinx-build -W``. A listing that nothing can execute goes into the directive
``not-executed``, with the reason: see ``not_executed``, which this extension sets up.

The extension looks for the text in the file that ``literalinclude`` names; in the script, on a
page that sphinx-gallery made of one; and otherwise in the source of the page. What the code of a
script printed belongs to the code before it.

Every listing is a target of its own, ``code-1`` and so on. A build of HTML also writes
``code-provenance.json`` beside the doctrees: ``runs``, as configured, and ``listings``, the
fields of ``Listing`` with the ``page``, and with the names of the ``runs`` that executed it.

Configuration; names of files have slashes and are relative to ``code_provenance_root``:

``code_provenance_runs``
    A dictionary from the name of each run to a dictionary of anything that JSON can hold. Its
    ``executes`` is a list of names of files, and of texts that readers type, such as a command. A
    typed text without a run of its own is proved by the runs of its page.
``code_provenance_root``
    A folder, relative to the sources; default ``"."``. If a symbolic link leads out of it, the
    folder of ``conf.py`` counts.
``code_provenance_scripts``
    A dictionary from page to the script that it was made of.
``code_provenance_unexecuted``
    A dictionary from the name of a file to the numbers of the lines that no run executes. Listings
    in ``not-executed`` with ``partly`` highlight them. A listing outside that has one is a warning.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import dedent
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.transforms.i18n import Locale
from sphinx.util import logging

from ..text.gallery_scripts import code_lines
from .not_executed import ancestors, facts

logger = logging.getLogger(__name__)

DATA = "code-provenance.json"
OUTPUT_CLASS = "sphx-glr-script-out"  # Of sphinx-gallery, around the output of a script.


@dataclass(frozen=True)
class Listing:
    """A listing of a page, before it is translated, and where its text comes from."""

    number: int  # on its page, from 1
    kind: str  # "include"; "cell", code of a script; "output", what it printed; or "typed"
    language: str
    file: str
    lines: tuple[int, int] | None  # the first and the last in the file
    typed: str | None = None  # the text, if it is typed into the page
    not_executed: str = ""  # the reason, translated, with literals between backquotes
    partly: bool = False  # the reason is about some lines only,
    lines_not_executed: tuple[int, ...] = ()  # which are highlighted

    @property
    def needs_run(self) -> bool:
        return self.partly or not self.not_executed


# -- When a page is read -----------------------------------------------------------


class FindSources(SphinxTransform):
    """Note at each listing where its text comes from, before the text is translated."""

    default_priority = Locale.default_priority - 1

    def apply(self, **kwargs: Any) -> None:
        root = Path(self.app.srcdir, self.config.code_provenance_root).resolve()
        name = self.config.code_provenance_scripts.get(self.env.docname)
        script = str(root / name) if name else None
        cells = list(code_lines(_read(script))) if script else []
        # The lines of the code to which an output belongs: those before it, and only in
        # a script without texts those after it.
        printing = cells[0][1:] if len(cells) == 1 else None
        for number, node in enumerate(_nodes(self.document), 1):
            node["ids"].append(f"code-{number}")
            text = node.astext().strip("\n")
            kind, file, lines = self._source(node, text, script, cells)
            if kind == "cell":
                printing = lines
            elif kind == "output":
                lines = printing
            top = root if Path(file).is_relative_to(root) else self.app.confdir
            node["provenance"] = Listing(
                number,
                kind,
                node.get("language", "none").lower(),
                Path(os.path.relpath(file, top)).as_posix(),
                lines,
                text if kind == "typed" else None,
            )

    def _source(
        self, node: Any, text: str, script: str | None, cells: list[tuple[str, int, int]]
    ) -> tuple[str, str, tuple[int, int] | None]:
        """Return the kind of a listing, its file, and the lines there or None."""
        included = node.get("source")
        if included:
            return "include", included, place(text, _read(included))
        if script is None:
            page = str(self.env.doc2path(self.env.docname))
            return "typed", page, place(text, _read(page))
        self.env.note_dependency(script)
        if any(OUTPUT_CLASS in x.get("classes", []) for x in ancestors(node)):
            return "output", script, None
        if cells and cells[0][0] == text:
            _, first, last = cells.pop(0)
            return "cell", script, (first, last)
        return "typed", script, place(text, re.sub(r"^# ?", "", _read(script), flags=re.M))


def _nodes(document: nodes.document) -> list[nodes.Element]:
    kinds = nodes.literal_block | nodes.doctest_block
    return list(document.findall(lambda node: isinstance(node, kinds)))


def _read(path: str | Path) -> str:
    return Path(path).read_text(encoding="utf-8")


def place(text: str, whole: str) -> tuple[int, int] | None:
    """Return the first and last line number of a text, however indented, or None."""
    text, lines = dedent(text).rstrip(), whole.split("\n")
    first, length = text.partition("\n")[0].strip(), text.count("\n") + 1
    for start, line in enumerate(lines):
        if line.strip() == first:
            if dedent("\n".join(lines[start : start + length])).rstrip() == text:
                return start + 1, start + length
    return None


def collect(app: Sphinx, doctree: nodes.document) -> None:
    """Keep the listings of a page; the reasons on it are translated by now."""
    listings = app.env.metadata[app.env.docname]["code_provenance"] = []
    for node in _nodes(doctree):
        listing = node["provenance"]
        if said := facts(node):
            listing = replace(listing, **said)
            if not listing.not_executed:
                logger.warning("not-executed needs a reason", location=node)
        if listing.needs_run and (lines := _unexecuted(app, listing)):
            listing = replace(listing, lines_not_executed=lines)
            _highlight(node, listing)
        listings.append(listing)


def _unexecuted(app: Sphinx, listing: Listing) -> tuple[int, ...]:
    first, last = listing.lines or (0, -1)
    numbers = app.config.code_provenance_unexecuted.get(listing.file, ())
    return tuple(number for number in numbers if first <= number <= last)


def _highlight(node: nodes.Element, listing: Listing) -> None:
    first, _ = listing.lines or (1, 1)
    if listing.partly:
        lines = [number - first + 1 for number in listing.lines_not_executed]
        node.setdefault("highlight_args", {})["hl_lines"] = lines
    else:
        logger.warning(
            "no run executes line %s of %s: put the listing into the directive not-executed, "
            "with partly and the reason",
            ", ".join(map(str, listing.lines_not_executed)),
            listing.file,
            location=node,
        )


# -- When all pages are known ------------------------------------------------------


def demand_proofs(app: Sphinx, env: BuildEnvironment) -> None:
    if app.builder.format != "html":
        return  # Messages can be collected while a proof is still missing.
    for page, listing, runs in sorted(_proved(app), key=lambda x: x[0]):
        where = f"listing {listing.number}, from {listing.file},"
        if listing.lines is None:
            problem = (
                "has a text that the file does not contain: make the page again, or include "
                "the text from a file"
            )
        elif listing.needs_run and not runs:
            where += f" lines {listing.lines[0]} to {listing.lines[1]},"
            problem = (
                "is not executed: show code of a file that is executed, or say in the "
                "directive not-executed why it cannot be"
            )
        else:
            continue
        logger.warning("%s %s", where, problem, location=page)


def _proved(app: Sphinx) -> Iterator[tuple[str, Listing, list[str]]]:
    """Yield each listing with its page and its runs, in the order of reading."""
    runs = app.config.code_provenance_runs.items()
    for page in dict.fromkeys([*app.env.collect_relations(), *sorted(app.env.found_docs)]):
        for listing in app.env.metadata[page].get("code_provenance", []):
            of_text, of_file = (
                [name for name, run in runs if subject in run.get("executes", ())]
                for subject in (listing.typed, listing.file)
            )
            yield page, listing, (of_text or of_file) if listing.needs_run else []


def write_data(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    runs = {
        name: {key: value for key, value in run.items() if key != "executes"}
        for name, run in app.config.code_provenance_runs.items()
    }
    listings = [
        {
            "page": page,
            **{name: x for name, x in asdict(listing).items() if x not in (None, ())},
            "runs": names,
        }
        for page, listing, names in _proved(app)
    ]
    data = {"runs": runs, "listings": listings}
    text = json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    Path(app.doctreedir, DATA).write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.setup_extension("sphinxext.code.not_executed")
    app.add_config_value("code_provenance_root", ".", "env", types=[str])
    app.add_config_value("code_provenance_scripts", {}, "env", types=[dict])
    app.add_config_value("code_provenance_runs", {}, "", types=[dict])
    app.add_config_value("code_provenance_unexecuted", {}, "env", types=[dict])
    app.add_transform(FindSources)
    app.connect("doctree-read", collect)
    app.connect("env-updated", demand_proofs)
    app.connect("build-finished", write_data)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
