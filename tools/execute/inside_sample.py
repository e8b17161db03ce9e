"""Execute one gallery script under sphinx-gallery, in this process.

usage: python -m tools.execute.inside_sample SCRIPT WORK_FOLDER

Writes the page to WORK_FOLDER/docs/page. execution.py starts one such
process for each script; nothing here knows about languages or themes.
"""

import os
import re
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx_gallery import gen_rst

from ..processes import fork_server

# Their part of a stack says nothing about a sample.
OF_THE_BUILD = re.compile(r"/sphinx(_gallery)?/|/tools/(execute|processes)/|<frozen runpy>")


class CapturedOutput(gen_rst._LoggingTee):
    """Captures for the page what Python prints, and leaves stderr to the build, which fails."""

    def set_std_and_reset_position(self):
        stderr = sys.stderr
        super().set_std_and_reset_position()
        sys.stderr = stderr
        return self


def capture_only_here() -> None:
    """Let a forked process print to the descriptor, where the build finds what no page shows."""
    if isinstance(sys.stdout, CapturedOutput):
        sys.stdout, _ = sys.stdout.origs


def warnings_are_errors(gallery_conf, fname):
    """Turn warnings into errors; sphinx-gallery calls this right before the script runs."""
    warnings.resetwarnings()
    warnings.simplefilter("error")


class TableScraper:
    """Keep the tables that a block of the script shows, in reST, until sphinx-gallery asks."""

    def __init__(self) -> None:
        self.tables: list[str] = []

    def show(self, header: list[str], rows: list[list[str]]) -> None:
        self.tables.append(table(header, rows))

    def __call__(self, block, block_vars, gallery_conf) -> str:
        """Return the tables of a block; sphinx-gallery calls this after each block."""
        tables, self.tables = self.tables, []
        return "\n\n".join(tables)


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table in reST, with the first cell of each row as code."""
    lines = [".. list-table::", "   :header-rows: 1", "   :class: result-table", ""]
    for row in [header, *([f"``{first}``", *others] for first, *others in rows)]:
        lines += [f"   * - {row[0]}", *(f"     - {cell}" for cell in row[1:])]
    return "\n".join(lines)


def configuration(script: Path, scraper: TableScraper) -> dict[str, Any]:
    only_this_script = re.escape(script.name) + "$"
    return {
        "project": "sample",
        "extensions": ["sphinx_gallery.gen_gallery"],
        # A function as a value is fine, report() tells of a failed sample, and a worker may
        # have the name of its sample.
        "suppress_warnings": [
            "config.cache",
            "sphinx_gallery.duplicate_filename",
            "sphinx_gallery.example_error",
        ],
        "sphinx_gallery_conf": {
            "examples_dirs": str(script.parent),
            "gallery_dirs": "page",
            "filename_pattern": f"/{only_this_script}",
            "ignore_pattern": f"^(?!{only_this_script})",
            "abort_on_example_error": True,
            "reset_modules": (warnings_are_errors,),
            # Only what is printed is output; the value of a last line is not.
            "capture_repr": (),
            "image_scrapers": (scraper,),
            # Nothing that changes from run to run goes into a page.
            "min_reported_time": float("inf"),
            "write_computation_times": False,
            "show_memory": False,
            "show_signature": False,
            "download_all_examples": False,
        },
    }


def report(error: BaseException, script: Path) -> None:
    """Print the traceback of ``error`` from the script's own line on."""
    while (cause := getattr(error, "orig_exc", None)) is not None:
        error = cause
    summary = traceback.TracebackException.from_exception(error)
    ours = [frame.filename == str(script) for frame in summary.stack]
    stack = summary.stack[ours.index(True) :] if any(ours) else summary.stack
    stack = [frame for frame in stack if not OF_THE_BUILD.search(frame.filename)]
    summary.stack = traceback.StackSummary.from_list(stack)
    summary.__cause__ = summary.__context__ = None
    # A script that Python cannot read has run no line.
    print("".join(summary.format() if stack else summary.format_exception_only()), file=sys.stderr)


def use_fork_server() -> None:
    """Let the ranks of this sample come from the fork server, if there is one."""
    if fork_server.ADDRESS not in os.environ:
        return
    import launcher

    [start] = launcher.starters

    def start_forked(command, *, start_new_session, **options):
        if command[1:3] != ["-m", "torch.distributed.run"]:
            return start(command, start_new_session=start_new_session, **options)
        command[2] = "tools.execute.forked_ranks"
        return fork_server.popen(command, **options)

    launcher.starters.append(start_forked)


def main() -> None:
    script, work = Path(sys.argv[1]), Path(sys.argv[2])
    source, output = work / "docs", work / "out"
    sys.path.insert(0, str(script.parent))
    import result_table  # of the gallery, like all that its scripts import

    scraper = TableScraper()
    result_table.displays.append(scraper.show)
    use_fork_server()
    gen_rst._LoggingTee = CapturedOutput
    os.register_at_fork(after_in_child=capture_only_here)
    try:
        # sphinx-gallery does all its work while Sphinx starts; nothing is left to build.
        Sphinx(
            source,
            None,
            output,
            output,
            "dummy",
            confoverrides=configuration(script, scraper),
            status=None,
        )
    except BaseException as error:
        report(error, script)
        sys.exit(1)


if __name__ == "__main__":
    main()
