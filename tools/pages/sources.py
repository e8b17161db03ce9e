"""Lay out the sources of all pages for Sphinx: docs/, and a page for each sample.

Rendering shows the pages that the stage "execute" made. Catalogs and previews need nothing
executed: the page of a sample is then made from its script. The tables that the script shows
are texts of its page, too; they are in its accepted output.
"""

import os
import re
import shutil
from pathlib import Path

from sphinxext.text.gallery_scripts import prose, visible

from ..execute.expected_outputs import accepted
from ..execute.samples import blocks_of, page_of, samples, source_of
from ..project.editors import is_editors_file
from ..project.errors import BuildError
from ..project.paths import DOCS, ROOT, relative

# Beside docs/: pages include files of these.
INCLUDED = ("gallery", "extension", "starter_accelerator", "locales")
TABLE = re.compile(r"^\* - .*\n(?:(?:\* -|  -|   ).*\n)*", re.M)
SHOWS_TABLE = "show_table("  # See gallery/result_table.py.
OPTIONS = "   :header-rows: 1\n   :class: result-table\n"


def lay_out_executed(folder: Path) -> Path:
    """Lay out the pages as ``lay_out`` does. Raises BuildError if a sample was not executed."""
    for script in samples():
        if not source_of(script).is_file():
            raise BuildError(f"{relative(script)} has no page: run `make execute` first")
    return lay_out(folder, executed=True)


def lay_out(folder: Path, *, executed: bool) -> Path:
    """Copy docs/ into a folder, with a page for each sample; return where the pages are.

    With ``executed``, the samples that were run have the pages that were made then. Links to
    the folders of ``INCLUDED`` are beside the copy, as the folders are beside docs/.
    """
    target = folder / DOCS.name
    shutil.rmtree(target, ignore_errors=True)
    # With its times: Sphinx reads what is new.
    shutil.copytree(DOCS, target, ignore=lambda _, names: filter(is_editors_file, names))
    for name in INCLUDED:
        link = folder / name
        if link.is_symlink():
            link.unlink()
        else:  # A copy of the clone may hold what it led to.
            shutil.rmtree(link, ignore_errors=True)
        link.symlink_to(ROOT / name)
    for script in samples():
        page = target / f"{page_of(script)}.rst"
        page.parent.mkdir(exist_ok=True)
        if executed and source_of(script).is_file():
            shutil.copy2(source_of(script), page)
        else:
            page.write_text(unexecuted_page(script))
            # As old as what it is made from, for the same reason.
            newest = max(path.stat().st_mtime_ns for path in [script, *accepted(script)])
            os.utime(page, ns=(newest, newest))
    return target


def unexecuted_page(script: Path) -> str:
    """Return the page that sphinx-gallery would make of a script, without printed output.

    sphinx-gallery itself would bring Pillow: a third of the whole installation.
    """
    output = "".join(path.read_text() for path in accepted(script))
    tables, parts = TABLE.findall(output), []
    for kind, source in blocks_of(script):
        if kind != "code":
            parts.append(prose(kind, source))
        elif code := visible(source):
            parts.append(f".. code-block:: Python\n\n{_indented(code)}")
            for _ in range(min(len(tables), code.count(SHOWS_TABLE))):
                parts.append(_table(tables.pop(0)))
    # Those of a function of the script's own.
    return "\n\n".join([*parts, *map(_table, tables)]) + "\n"


def _table(rows: str) -> str:
    return f".. list-table::\n{OPTIONS}\n{_indented(rows)}"


def _indented(text: str) -> str:
    return "".join(f"   {line}\n" if line else "\n" for line in text.splitlines())
