"""Which run executed which file, for the page "What is verified" and for programs.

A file of the extension is compiled by the stage "compile", and executed by every sample
that imports the result. A file of gallery/ is executed by the samples that start or
import it. Catalogs are read by the stage "render". What is typed into a page is a
command for readers: tests run those.

``provenance.json`` at the top of the site is the same in every build of a commit.
Beside the site, in _build/provenance.json, the same runs also have the moment and the
duration of their last execution.
"""

import ast
import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from ..compile.stage import SECONDS_FILE, extension_sources
from ..execute.samples import CODE, samples
from ..project.configuration import read
from ..project.languages import SOURCE_LANGUAGE
from ..project.paths import (
    BUILD,
    EXECUTED,
    EXTENSION,
    GALLERY,
    LOCALES,
    RENDERED,
    RUN_SECONDS,
    VERSIONS,
    relative,
)
from ..state.digests import digest
from ..state.records import Results
from . import versions

NOTED_BY_SPHINX = "code-provenance.json"  # See sphinxext/code_provenance.py.
FILE = "provenance.json"
BESIDE_SITE = BUILD / FILE
COMMANDS_TEST = "tests/tools/test_typed_commands.py"
COMMANDS_SECONDS = BUILD / "commands.seconds"
# The pages whose typed commands that test runs.
TYPED = ["docs/translation/guide.md", "docs/verified.md"]


# -- What executed what ------------------------------------------------------------


def executed():
    """A dictionary from file to the names of the runs that execute it."""
    found = {}
    for path in extension_sources():
        found[relative(path)] = ["compile"]
    for path in LOCALES.rglob("*.po"):
        found[relative(path)] = ["render"]
    for script in samples():
        programs = programs_of(script)
        for path in programs:
            found.setdefault(relative(path), []).append(script.stem)
        if any(_loads_extension(path) for path in programs):
            for path in extension_sources():
                if _is_loaded(path):
                    found[relative(path)].append(script.stem)
    _parsed().save()
    return found | {page: [COMMANDS_TEST] for page in TYPED}


def runs():
    """A dictionary from the name of a run to what there is to say about it."""
    seconds = read(RUN_SECONDS, dict)
    # Every run has to end well; before the first execution, none has ended.
    status = 0 if VERSIONS.is_file() else None
    found = {
        "compile": {
            "kind": "stage",
            "status": status,
            "seconds": seconds.get("compile"),
        },
        "render": {"kind": "stage", "status": 0},
        COMMANDS_TEST: {
            "kind": "test",
            "status": 0,
            "seconds": seconds.get(COMMANDS_TEST),
            "file": COMMANDS_TEST,
        },
    }
    for script in samples():
        found[script.stem] = {
            "kind": "sample",
            "status": status,
            "seconds": seconds.get(script.stem),
            "page": f"auto_gallery/{script.stem}",
        }
    return found


def programs_of(script):
    """A script, and the programs and modules of gallery/ that it starts or imports."""
    found, to_read = set(), {script}
    while to_read:
        found |= to_read
        to_read = {x for path in to_read for x in _named_in(path)} - found
    return sorted(found)


def _is_loaded(path):
    """Whether a file of the extension is a part of what a program imports."""
    return path.suffix in {".cpp", ".hpp"} or path.parent == EXTENSION / EXTENSION.name


def _named_in(path):
    """The files of gallery/ whose path is a string of the code, or that it imports."""
    strings, modules = _strings_and_modules(path)
    names = [x for x in strings if Path(x).suffix in CODE] + [f"{x}.py" for x in modules]
    return [GALLERY / name for name in names if (GALLERY / name).is_file()]


def _loads_extension(path):
    """Whether a program imports the extension, or compiles it itself."""
    strings, modules = _strings_and_modules(path)
    folder = f"/{EXTENSION.parent.name}/{EXTENSION.name}"
    return EXTENSION.name in modules or any(x.endswith(folder) for x in strings)


def _strings_and_modules(path):
    """The constants of a Python program, as texts, and the modules that it imports."""
    if path.suffix != ".py":
        return [], []
    code = path.read_text()
    return _parsed().get(digest([], code), lambda: _parse(code))


@cache  # Many samples use the same files, and parsing takes longer than all else here.
def _parsed():
    return Results("programs")


def _parse(code):
    strings, modules = set(), set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant):
            strings.add(str(node.value))
        elif isinstance(node, ast.Import):
            modules |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module)
    return [list(strings), list(modules)]


# -- The files for programs --------------------------------------------------------


def write_for_readers():
    """Write provenance.json for the site, from what Sphinx noted of English pages."""
    noted = BUILD / "doctrees" / SOURCE_LANGUAGE.url / NOTED_BY_SPHINX
    data = {"verified_with": versions.facts(), **json.loads(noted.read_text())}
    _write(RENDERED / FILE, data)


def write_beside_site():
    """Add the moment and the duration of each run, which no two builds share."""
    data = json.loads((RENDERED / FILE).read_text())
    for name, run in data["runs"].items():
        run |= _last_execution(name, run)
    _write(BESIDE_SITE, data)


def _last_execution(name, run):
    """The moment is that in which the run wrote how long it took."""
    took = {
        "compile": SECONDS_FILE,
        "render": RENDERED / FILE,
        COMMANDS_TEST: COMMANDS_SECONDS,
    }.get(name, EXECUTED / f"{name}.seconds")
    if not took.is_file():
        return {"last_executed": None}
    when = datetime.fromtimestamp(took.stat().st_mtime, UTC)
    found = {"last_executed": when.isoformat(timespec="seconds")}
    return found if name == "render" else found | {"seconds": float(took.read_text())}


def note_commands(seconds):
    """Remember that the commands of the pages were just run, and how long that took."""
    COMMANDS_SECONDS.write_text(f"{seconds:.1f}\n")


def commands_seconds():
    """How long the commands of the pages took when they were run last, or None."""
    return float(COMMANDS_SECONDS.read_text()) if COMMANDS_SECONDS.is_file() else None


def _write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(f"{text}\n")
