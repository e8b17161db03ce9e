"""Every line of Python and C++ that a page shows was executed by the gallery, or is highlighted.

Runs all samples in a copy of the project in which the interpreter and the compiled code
count lines, and writes those that none has executed to _build (tools/pages/unexecuted_lines.py).
Pages highlight what `make accept-lines` has kept of these.

Nearly every sample shows a line of a function or of a branch, so none can be left out, and their
time is all that this takes.
"""

import json
import os
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import coverage
import pytest

from sphinxext.text.gallery_scripts import blank_hidden
from tools.pages.unexecuted_lines import COUNTED, write
from tools.project.paths import EXTENSIONS, FRAME, GALLERY, HEADERS, ROOT, SITE, relative

LANGUAGES = {"python", "cpp"}
# gcov sees no line of these: one only declares, and of the other, a sample takes the text.
NOT_COUNTED = {
    "extension/simulated_accelerator/include/stream.hpp",
    "gallery/tutorial/releases/sketch_of_capabilities.hpp",
}
TIMEOUT = 5400  # seconds; on two quiet cores it takes about 1,000
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
    """Return the numbers of the lines in listings that no sample executes, by file.

    ``lines`` has for each file the numbers of the lines that can be executed, and of those that
    were.
    """
    found = {}
    for listing in listings:
        name, (first, last) = listing["file"], listing["lines"]
        statements, executed = lines[name]
        left = blank_hidden((ROOT / name).read_text()).split("\n")
        missed = False
        for number in range(first, last + 1):
            # The end of a function belongs to the path of an exception.
            if number in statements and re.search(r"\w", left[number - 1]):
                missed = number not in executed
            elif not _continues(left[number - 2]):
                missed = False
            if missed:
                found.setdefault(name, set()).add(number)
    return found


def _continues(line):
    """Return whether a statement goes on after this line of it."""
    code = re.split(r"\s(?://|#)\s", line)[0].strip()
    return bool(code) and not re.search(r"[;{}:]$", code)


def _counted(data, files):
    """Return ``lines`` of unexecuted() for these files, from the reports in a folder."""
    compiled = _lines_of_cpp(data)
    unknown = {x for x in files if not x.endswith(".py")} - {*compiled} - NOT_COUNTED
    assert not unknown, f"gcov has counted no line of {sorted(unknown)}"
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
            counts = {} if name in NOT_COUNTED else compiled[name]
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
    for folder in (*EXTENSIONS, HEADERS, FRAME / "c10d_frame", GALLERY):
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
    copy.python("-m", "tools.execute", timeout=TIMEOUT)
    # pip executes this file as a string, and the lines of a string belong to no file.
    imports = os.pathsep.join([str(copy.root), str(copy.root / relative(FRAME))])
    for extension in shown:
        setup = f"{relative(extension)}/setup.py"
        copy.python(setup, "--version", timeout=60, PYTHONPATH=imports)


@pytest.mark.timeout(TIMEOUT + 120)
def test_each_line_on_a_page_was_executed_or_is_highlighted(lines):
    shown = listings()
    assert {Path(listing["file"]).suffix for listing in shown} == {".py", ".cpp", ".hpp"}
    counted = unexecuted(shown, lines)
    write(COUNTED, counted)
    highlighted = {}
    for listing in shown:
        numbers = listing.get("lines_not_executed", [])
        highlighted.setdefault(listing["file"], set()).update(numbers)
    faults = [
        f"{name}:{number} was not executed, and is not highlighted"
        for name in sorted(counted)
        for number in sorted(counted[name] - highlighted[name])
    ]
    faults += [
        f"{name}:{number} is highlighted, and was executed"
        for name in sorted(highlighted)
        for number in sorted(highlighted[name] & lines[name][1])
    ]
    assert not faults, "\n".join([*faults, "`make accept-lines` highlights what was counted"])
