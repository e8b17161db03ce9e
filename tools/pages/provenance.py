"""Tell which run executed which file, for the check of the pages and for readers.

A file of an extension is compiled by the stage "compile", and executed by every sample
that imports the result. A file of gallery/ is executed by the samples that may use it, which
also compare what they show with their accepted output. A text that is typed into a page is a
command for readers, which commands.py runs.

A run has an exit status only if a run of exactly these contents was recorded.

``provenance.json`` at the top of the site is the same in every build of a commit.
Beside the site, in _build/provenance.json, the same runs also have the moment and the
duration of their last execution.
"""

import json
from pathlib import Path
from typing import Any

from ..compile.extensions import EXTENSIONS
from ..execute import run_seconds
from ..execute.execution import run_of
from ..execute.samples import page_of, samples
from ..project.languages import SOURCE_LANGUAGE
from ..project.paths import BUILD, RENDERED, relative
from ..state.runs import Run
from . import commands, versions

NOTED_BY_SPHINX = "code-provenance.json"  # See sphinxext/code/code_provenance.py.
FILE = "provenance.json"
BESIDE_SITE = BUILD / FILE


def recorded_runs() -> dict[str, Run]:
    """Return the runs that have a record, by name."""
    runs = {extension.compilation: extension.run for extension in EXTENSIONS}
    runs |= {page_of(script): run_of(script) for script in samples()}
    return runs | {command.typed: command.as_run for command in commands.COMMANDS}


def runs_for_pages() -> dict[str, dict[str, Any]]:
    """Return what the pages say about each run, and what it executes, by its name."""
    seconds = run_seconds.by_name()
    runs: dict[str, dict[str, Any]] = {}
    for name, run in recorded_runs().items():
        files = [name] if run.kind == "command" else [relative(path) for path in run.files]
        runs[name] = {"kind": run.kind, "status": run.status, "executes": files}
        runs[name] |= {"seconds": seconds.get(name)} | ({"page": run.page} if run.page else {})
    return runs


def write_for_readers() -> None:
    """Write provenance.json for the site, from Sphinx's notes on the English pages."""
    noted = BUILD / "doctrees" / SOURCE_LANGUAGE.url / NOTED_BY_SPHINX
    _write(RENDERED / FILE, {"verified_with": versions.facts(), **json.loads(noted.read_text())})


def write_beside_site() -> None:
    """Write the same with the moment and the exact duration of each run, for no page."""
    data, runs = json.loads((RENDERED / FILE).read_text()), recorded_runs()
    for name, described in data["runs"].items():
        if described.get("status") is not None:
            recorded = runs[name].record.load()
            described |= {"last_executed": recorded["ended"], "seconds": recorded["seconds"]}
    _write(BESIDE_SITE, data)


def _write(path: Path, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(f"{text}\n")
