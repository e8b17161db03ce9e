"""Every line of Python and C++ that a page shows was executed by the gallery.

Runs all samples in a copy of the project in which the interpreter and the compiled code
count lines. A line that is not executed must be highlighted on its page, in the
directive ``not-executed`` (sphinxext/code/not_executed.py).

Nearly every sample shows a line of a function or of a branch, so none can be left out, and their
time is all that this takes.
"""

import json
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import coverage
import pytest

from sphinxext.text.gallery_scripts import blank_hidden
from tools.project.paths import EXTENSIONS, FRAME, GALLERY, ROOT, SITE, relative

LANGUAGES = {"python", "cpp"}
ONLY_DECLARED = {"extension/simulated_accelerator/include/stream.hpp"}  # gcov sees no line of it.
TIMEOUT = 2100  # seconds; on two cores, beside other tests, it takes about 1,000
CONFIGURATION = """\
[run]
data_file = {data}/lines
parallel = true
include =
    */gallery/*
    */setup.py
    */*_collectives/__init__.py
    */simulated_accelerator/__init__.py
patch = _exit
# A rank that its launcher ends has executed lines, too.
sigterm = true
[paths]
{packages}
source =
    {root}
    {copy}
"""
# The same package as a source, as the build installs it, and as a reader does.
PACKAGE = """\
{name} =
    {folder}/{name}
    */_build/extension/{name}
    */site-packages/{name}
"""


def unexecuted(listings, lines):
    """Yield the faults of the listings of the site.

    ``lines`` has for each file the numbers of the lines that can be executed, and of those that
    were.
    """
    for listing in listings:
        name, (first, last) = listing["file"], listing["lines"]
        statements, executed = lines[name]
        shown = _shown(name, range(first, last + 1)) & statements
        marked = set(listing.get("lines_not_executed", []))
        for line in sorted(shown - executed - marked):
            yield f"{name}:{line} is on the page {listing['page']}, and was not executed"
        for line in sorted(marked & executed):
            yield f"{name}:{line} is highlighted on {listing['page']}, but was executed"


def _shown(name, lines):
    left = blank_hidden((ROOT / name).read_text()).split("\n")
    # The end of a function belongs to the path of an exception.
    return {line for line in lines if re.search(r"\w", left[line - 1])}


def _counted(data, files):
    """Return ``lines`` of unexecuted() for these files, from the reports in a folder."""
    compiled = _lines_of_cpp(data)
    python = coverage.Coverage(config_file=str(data / "configuration"))
    with warnings.catch_warnings():
        # Of a process that was killed the file is empty.
        warnings.simplefilter("ignore", coverage.exceptions.CoverageWarning)
        python.combine([str(data)])
    lines = {}
    for name in files:
        if Path(name).suffix == ".py":
            _, statements, _, missing, _ = python.analysis2(str(ROOT / name))
            lines[name] = {*statements}, {*statements} - {*missing}
        else:
            counts = {} if name in ONLY_DECLARED else compiled[name]
            lines[name] = {*counts}, {line for line, count in counts.items() if count}
    return lines


def _lines_of_cpp(data):
    """Return how often each line was executed, by file and line, in all compilations."""
    lines = {}
    for notes in data.glob("*.gcno"):
        done = subprocess.run(
            ["gcov", "--json-format", "--stdout", notes],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        for file in (x for part in done.stdout.splitlines() for x in json.loads(part)["files"]):
            if ours := _compiled_from(file["file"]):
                counts = lines.setdefault(ours, {})
                for line in file["lines"]:
                    number = line["line_number"]
                    counts[number] = counts.get(number, 0) + line["count"]
    return lines


def _compiled_from(path):
    """Return the file of this project whose copy was compiled, or None."""
    for folder in (*EXTENSIONS, FRAME, GALLERY):
        _, ours, inside = path.rpartition(f"/{folder.name}/")
        if ours and (folder / inside).is_file():
            return relative(folder / inside)
    return None


def listings():
    everything = json.loads((SITE / "provenance.json").read_text())["listings"]
    return [
        listing
        for listing in everything
        if listing["language"] in LANGUAGES and (listing["partly"] or not listing["not_executed"])
    ]


@pytest.fixture(scope="module")
def lines(instrumented_copy, tmp_path_factory):
    """Return ``lines`` of unexecuted() for each file that a page shows."""
    files = {listing["file"] for listing in listings()}
    data = tmp_path_factory.mktemp("data")
    _run_samples(instrumented_copy, data, files)
    return _counted(data, files)


def _run_samples(instrumented_copy, data, files):
    """Run all samples in a copy whose processes write their counts to a folder."""
    configuration = data / "configuration"
    flags = ["-O0", "--coverage", "-fprofile-update=atomic", f'-dumpdir "{data}/$$-"']
    copy = instrumented_copy(flags, COVERAGE_PROCESS_START=str(configuration))
    shown = [x for x in EXTENSIONS if any((ROOT / name).is_relative_to(x) for name in files)]
    for extension in {*EXTENSIONS} - {*shown}:  # It would take minutes to compile.
        shutil.rmtree(copy.root / relative(extension))
    packages = "".join(PACKAGE.format(name=x.name, folder=x) for x in shown)
    configuration.write_text(
        CONFIGURATION.format(data=data, root=ROOT, copy=copy.root, packages=packages)
    )
    here = Path(__file__).parent
    (copy.root / "sitecustomize.py").write_text((here / "sitecustomize.py").read_text())
    copy.python("-m", "tools.execute", timeout=TIMEOUT)
    # pip executes this file as a string, and the lines of a string belong to no file.
    for extension in shown:
        copy.python(f"{relative(extension)}/setup.py", "--version", timeout=60)


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT + 120)
def test_every_line_on_a_page_was_executed_or_is_highlighted(lines):
    shown = listings()
    assert {Path(listing["file"]).suffix for listing in shown} == {".py", ".cpp", ".hpp"}
    faults = list(unexecuted(shown, lines))
    assert not faults, "\n".join(faults)
