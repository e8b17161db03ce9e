"""The sources of all pages without executing anything: what the catalogs and the preview need.

The page of a sample is made from its script. The tables that the script shows are texts of
its page, too; they are in its committed output.
"""

import os
import re
import shutil

from sphinxext.text.gallery_scripts import prose, split, visible

from ..execute.expected_outputs import files as committed
from ..execute.samples import page_of, samples
from ..project.paths import DOCS, ROOT

# Beside docs/: pages include files of these.
INCLUDED = ("gallery", "extension", "locales")
TABLE = re.compile(r"^\* - .*\n(?:(?:\* -|  -|   ).*\n)*", re.M)
SHOWS_TABLE = "show_table("  # See gallery/result_table.py.
OPTIONS = "   :header-rows: 1\n   :class: result-table\n"


def lay_out(folder, *, executed):
    """Copy docs/ into a folder, with a page for each sample; return where the pages are.

    With ``executed``, the samples that were run have the pages that were made then.
    """
    target = folder / "docs"
    shutil.rmtree(target, ignore_errors=True)
    copy_docs(target)
    for name in INCLUDED:
        link = folder / name
        if link.is_symlink():
            link.unlink()
        else:  # A copy of the clone may hold what it led to.
            shutil.rmtree(link, ignore_errors=True)
        link.symlink_to(ROOT / name)
    for script in samples():
        page = target / f"{page_of(script)}.rst"
        if not executed or not page.exists():
            page.parent.mkdir(exist_ok=True)
            page.write_text(_page(script))
            # As old as what it is made from: Sphinx reads what is new.
            newest = max(path.stat().st_mtime_ns for path in made_from(script))
            os.utime(page, ns=(newest, newest))
    return target


def copy_docs(target):
    """Copy docs/ with its times, so that Sphinx reads only what is new."""
    shutil.copytree(DOCS, target, dirs_exist_ok=True)


def made_from(script):
    """The files that the page of a sample is made from."""
    return [script, *committed(script)]


def _page(script):
    """What sphinx-gallery makes of a script, but for what it printed.

    sphinx-gallery itself would bring Pillow: a third of the whole installation.
    """
    output = "".join(path.read_text() for path in made_from(script)[1:])
    tables, parts = TABLE.findall(output), []
    for kind, source in split(script.read_text()):
        if kind != "code":
            parts.append(prose(kind, source))
        elif code := visible(source):
            parts.append(f".. code-block:: Python\n\n{_indented(code)}")
            for _ in range(min(len(tables), code.count(SHOWS_TABLE))):
                parts.append(_table(tables.pop(0)))
    # Those of a function of the script's own.
    return "\n\n".join([*parts, *map(_table, tables)]) + "\n"


def _table(rows):
    return f".. list-table::\n{OPTIONS}\n{_indented(rows)}"


def _indented(text):
    return "".join(f"   {line}\n" if line else "\n" for line in text.splitlines())
