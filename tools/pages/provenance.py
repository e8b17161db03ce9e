"""Find which run executed which file, for the page "What is verified" and for programs.

A file of an extension is compiled by the stage "compile", and executed by every sample
that imports the result. A file of gallery/ is executed by the samples that start or
import it, which also compare what they show with their committed output. Catalogs are read
by the stage "render". A text that is typed into a page is a command for readers, which
commands.py runs.

A run has an exit status only if a run of exactly these contents was recorded.

``provenance.json`` at the top of the site is the same in every build of a commit.
Beside the site, in _build/provenance.json, the same runs also have the moment and the
duration of their last execution.
"""

import ast
import json
from functools import cache
from pathlib import Path

from ..compile.extensions import EXTENSIONS
from ..execute import expected_outputs
from ..execute.samples import CODE, page_of, samples
from ..execute.stage import record_of
from ..project.configuration import read
from ..project.languages import SOURCE_LANGUAGE
from ..project.paths import BUILD, LOCALES, RENDERED, RUN_SECONDS, relative
from ..state.runs import status
from . import commands, versions

NOTED_BY_SPHINX = "code-provenance.json"  # See sphinxext/code/code_provenance.py.
FILE = "provenance.json"
BESIDE_SITE = BUILD / FILE
RENDERING = "render"


# -- What executed what ------------------------------------------------------------


def executed():
    """Return a dictionary from file to the names of the runs that execute it."""
    found = {relative(path): [RENDERING] for path in LOCALES.rglob("*.po")}
    for name, files in _executed_files().items():
        for path in files:
            found.setdefault(relative(path), []).append(name)
    return found


def _executed_files():
    """Return a dictionary from the name of a run to the files that it executes."""
    found = {x.compilation: x.sources() for x in EXTENSIONS}
    for script in samples():
        programs = executes(script)
        loaded = [x for x in EXTENSIONS if any(_loads(x, path) for path in programs)]
        sources = [path for x in loaded for path in x.sources() if _is_loaded(x, path)]
        found[page_of(script)] = [*programs, *sources, *expected_outputs.files(script)]
    return found


def runs():
    """Return a dictionary from the name of a run to a description of it."""
    seconds, files = read(RUN_SECONDS, dict), _executed_files()
    # While the page is written, the outcome of its own rendering is unknown.
    found = {RENDERING: {"kind": "render"}} | commands.runs(seconds)
    for name, record in _records().items():
        found[name] = {"status": status(record.load(), files[name]), "seconds": seconds.get(name)}
    for extension in EXTENSIONS:
        found[extension.compilation] |= {"kind": "compile"}
    for script in samples():
        found[page_of(script)] |= {"kind": "sample", "page": page_of(script)}
    return found


def _records():
    """Return a dictionary from the name of a run to its record."""
    found = {extension.compilation: extension.record for extension in EXTENSIONS}
    return found | {page_of(script): record_of(script) for script in samples()}


def executes(script):
    """Return a script, and the programs and modules of its folder that it starts or imports."""
    found, to_read = set(), {script}
    while to_read:
        found |= to_read
        to_read = {x for path in to_read for x in _named_in(path, script.parent)} - found
    return sorted(found)


def _is_loaded(extension, path):
    """Return whether a program that imports an extension loads this file of it."""
    return path.suffix in {".cpp", ".hpp"} or path.parent == extension.folder / extension.name


def _named_in(path, folder):
    """Return the files that code imports from a folder or its own, or names in a string."""
    strings, modules = _strings_and_modules(path)
    names = [x for x in strings if Path(x).suffix in CODE]
    names += [f"{x.replace('.', '/')}.py" for x in modules]
    found = {place / name for name in names for place in (folder, path.parent)}
    return [file for file in found if file.is_file()]


def _loads(extension, path):
    """Return whether a program imports an extension, or compiles it itself."""
    strings, modules = _strings_and_modules(path)
    folder = f"/{relative(extension.folder)}"
    return extension.name in modules or any(x.endswith(folder) for x in strings)


def _strings_and_modules(path):
    """Return the string constants of a Python program, and the modules that it imports."""
    return _parse(path.read_text()) if path.suffix == ".py" else (set(), set())


@cache  # Many samples use the same files.
def _parse(code):
    strings, modules = set(), set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant):
            strings.add(str(node.value))
        elif isinstance(node, ast.Import):
            modules |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module)
    return strings, modules


# -- The files for programs --------------------------------------------------------


def write_for_readers():
    """Write provenance.json for the site, from Sphinx's notes on the English pages."""
    noted = BUILD / "doctrees" / SOURCE_LANGUAGE.url / NOTED_BY_SPHINX
    data = {"verified_with": versions.facts(), **json.loads(noted.read_text())}
    _write(RENDERED / FILE, data)


def write_beside_site():
    """Write the same with the moment and the exact duration of each run, for no page."""
    data = json.loads((RENDERED / FILE).read_text())
    records = _records() | commands.records()
    for name, run in data["runs"].items():
        if run.get("status") is not None:
            recorded = records[name].load()
            run |= {"last_executed": recorded["ended"], "seconds": recorded["seconds"]}
    _write(BESIDE_SITE, data)


def _write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(f"{text}\n")
