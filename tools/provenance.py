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
import hashlib
import json
import re
from datetime import UTC, datetime
from functools import cache

from sphinxext.gallery_scripts import HIDDEN, prose_lines

from . import verified
from .compile import extension_sources
from .digest import digest
from .errors import BuildError
from .languages import LANGUAGES, SOURCE_LANGUAGE
from .paths import (
    AUTO_GALLERY,
    BUILD,
    EXECUTED,
    EXTENSION,
    GALLERY,
    INSTALLED_EXTENSION,
    LOCALES,
    RENDERED,
    ROOT,
    RUN_SECONDS,
    VERSIONS,
    relative,
)
from .samples import samples

NOTED_BY_SPHINX = "code-provenance.json"  # See sphinxext/code_provenance.py.
FILE = "provenance.json"
BESIDE_SITE = BUILD / FILE
NOTES = BUILD / "runs"  # Of runs that are no samples: how long the last one took.
COMMANDS_TEST = "tests/tools/test_typed_commands.py"
# The pages whose typed commands that test runs.
TYPED = ["docs/translation/guide.md", "docs/verified.md"]
COMPILED = {".cpp", ".hpp"}


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
                if path.suffix in COMPILED:
                    found[relative(path)].append(script.stem)
    return found | {page: [COMMANDS_TEST] for page in TYPED}


def runs():
    """A dictionary from the name of a run to what there is to say about it."""
    seconds = json.loads(RUN_SECONDS.read_text())
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


def _named_in(path):
    """The files of gallery/ whose path is a string of the code, or that it imports."""
    for node in _nodes(path.read_text()):
        if isinstance(node, ast.Constant) and str(node.value).endswith(".py"):
            candidates = [GALLERY / node.value]
        else:
            candidates = [GALLERY / f"{name}.py" for name in _imported(node)]
        yield from (x for x in candidates if x.is_file())


@cache  # Many samples use the same files.
def _nodes(code):
    return list(ast.walk(ast.parse(code)))


def _imported(node):
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) else []


def _loads_extension(path):
    """Whether a program imports the extension, or compiles it itself."""
    return any(
        EXTENSION.name in _imported(node)
        or isinstance(node, ast.Constant)
        and str(node.value).endswith(f"/{EXTENSION.parent.name}/{EXTENSION.name}")
        for node in _nodes(path.read_text())
    )


# -- The pages of samples stay as their runs made them ------------------------------


def discard_changed_pages():
    """Let the samples be executed again whose pages were changed since by hand."""
    for script in samples():
        page, key, seal = _page_files(script)
        if page.is_file() and key.is_file() and seal.is_file():
            when, page_digest = seal.read_text().split()
            if when == _time(key) and page_digest != digest([page]):
                key.unlink()


def seal_pages():
    """Note what the pages are like after the last execution of each."""
    for script in samples():
        page, key, seal = _page_files(script)
        if not seal.is_file() or seal.read_text().split()[0] != _time(key):
            seal.write_text(f"{_time(key)} {digest([page])}\n")


def _page_files(script):
    """The page of a sample, what says that it ran, and what its page was like then."""
    executed = EXECUTED / script.stem
    page = AUTO_GALLERY / f"{script.stem}.rst"
    return page, executed.with_suffix(".key"), executed.with_suffix(".seal")


def _time(file):
    return str(file.stat().st_mtime_ns)


# -- The files for programs --------------------------------------------------------


def write_for_readers():
    """Write provenance.json for the site, from what Sphinx noted of English pages."""
    noted = BUILD / "doctrees" / SOURCE_LANGUAGE.url / NOTED_BY_SPHINX
    data = {"verified_with": verified.facts(), **json.loads(noted.read_text())}
    _write(RENDERED / FILE, data)


def write_beside_site():
    """Add the moment and the duration of each run, which no two builds share."""
    data = json.loads((RENDERED / FILE).read_text())
    for name, run in data["runs"].items():
        run |= _last_execution(name, run)
    _write(BESIDE_SITE, data)


def _last_execution(name, run):
    if run["kind"] == "sample":
        ended = EXECUTED / f"{name}.key"
        took = EXECUTED / f"{name}.seconds"
        measured = {"seconds": float(took.read_text())} if took.is_file() else {}
        return _moment(ended) | measured
    if (note := _note_file(name)).is_file():
        return _moment(note) | json.loads(note.read_text())
    known = {"compile": INSTALLED_EXTENSION / ".key", "render": RENDERED / FILE}
    return _moment(known[name]) if name in known else {"last_executed": None}


def _moment(file):
    if not file.is_file():
        return {"last_executed": None}
    when = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return {"last_executed": when.isoformat(timespec="seconds")}


def note(name, seconds):
    """Remember that a run, which is no sample, has just ended well."""
    _write(_note_file(name), {"seconds": round(seconds, 1)})


def noted_seconds(name):
    file = _note_file(name)
    return json.loads(file.read_text())["seconds"] if file.is_file() else None


def _note_file(name):
    return NOTES / f"{re.sub(r'[^a-z_]+', '-', name)}.json"


def _write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(f"{text}\n")


# -- The check of the rendered pages -----------------------------------------------


def findings(rendered, pages, parse):
    """Compare each listing of each page with its record, and that with the file."""
    file = rendered / FILE
    if not file.is_file():
        raise BuildError(f"{relative(file)} is missing: run `make render` first")
    records = {}
    for listing in json.loads(file.read_text())["listings"]:
        records.setdefault(f"{listing['page']}.html", {})[listing["number"]] = listing
    found = []
    for page in sorted(pages):
        recorded = records.get(page, {})
        for language in LANGUAGES:
            soup = parse(rendered / language.url / page)
            texts = {_number(tag): tag.get_text() for tag in soup.find_all("pre")}
            where = f"{language.url}/{page}: listing"
            for number in sorted(texts.keys() ^ recorded.keys()):
                found.append(f"{where} {number} has no provenance")
            if language == SOURCE_LANGUAGE:
                for number in sorted(texts.keys() & recorded.keys()):
                    for fault in _faults(texts[number], recorded[number]):
                        found.append(f"{where} {number} {fault}")
    return found


def _number(tag):
    """The number of the listing that an element is in; 0 if it is in none."""
    box = tag.find_parent(id=re.compile(r"code-\d+$"))
    return int(box["id"].removeprefix("code-")) if box else 0


def _faults(text, record):
    text = text.strip("\n")
    if hashlib.sha256(text.encode()).hexdigest() != record["sha256"]:
        yield "is not the text that was recorded of it"
    if record["kind"] != "output" and _flat(text) != _flat(_source(record)):
        first, last = record["lines"]
        yield f"does not stand in {record['file']}, lines {first} to {last}"


def _source(record):
    """The lines that a record names, without what a page does not show of them."""
    first, last = record["lines"]
    text = (ROOT / record["file"]).read_text()
    in_comment = record["kind"] == "typed" and record["file"].endswith(".py")
    lines = prose_lines(text) if in_comment else text.split("\n")
    return HIDDEN.sub("", "\n".join(lines[first - 1 : last]))


def _flat(text):
    return [line.strip() for line in text.split("\n") if line.strip()]
