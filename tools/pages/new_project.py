"""The files of a project with a backend of the reader's own, which begins without operations.

Its sources are those of extension/dummy_collectives with another name and without the operations,
whose zeros would be wrong results. The folder starter/ has the other files, a template makes
README.md, and conformance/ is copied. ``make new-backend`` writes the project, and readers can
download one with the name acme, in their language.
"""

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from sphinxext.code.project_downloads import renamed

from ..project.paths import DOCS, ROOT, SUITE
from ..project.published import PUBLISHED
from ..state.digests import files_below

DUMMY = ROOT / "extension" / "dummy_collectives"
STARTER = ROOT / "starter"
TEMPLATES = {"README.md": "project-readme.html"}
SITE = "https://SITE/"
# What a build by hand and tools leave in these folders.
MADE = re.compile(r"(^|/)(build|\S+\.egg-info|\.\w+_cache)/|\.(so|pyc)$")

# What else differs from the sources of the dummy.
EDITS = {
    r"(?m)^ *(//|#) \[/?[\w-]+\]\n": "",  # where a listing of a page begins or ends
    r"// A backend that implements .*\n// it sets every .*": "// Each rank has one in each group.",
    "A torch.distributed backend that sets .*zero": "The torch.distributed backend dummy",
    "The dummy c10d backend": "The c10d backend dummy",
    r'\{"cpu", "cuda"\}': '{"cpu"}',
    r"(?m)^(fast_to_compile = .*)$": r"\1\n# Sources that reduce or copy data need -O3.",
    r"(?m)^(?=c10.* create_backend\(\n.*/\* store \*/)": """\
// Let the ranks meet here. While this one waits for others, release Python's
// interpreter lock (py::gil_scoped_release). The store may have keys of an
// earlier group: https://SITE/communicate/meet-the-other-ranks.html
// That page also has a form of this function that gets the group's name and options.
""",
}
OPERATION = re.compile(r"\b(set_to_zero|allreduce|allgather)\(")
HERE = {
    ".hpp": """\
  // Declare each operation here that src/dummy.cpp defines. c10d refuses any
  // other, with an error that names it. The signatures:
  // https://SITE/tutorial/every-operation.html""",
    ".cpp": """\
// Define the first operation here, BackendDummy::allreduce. It calls checkOpen,
// checks its arguments, moves the data, and returns a WorkDummy with its outputs.
// That WorkDummy is complete at once, so the outputs must have their values:
// https://SITE/tutorial/step-1-subclass-backend.html
// To return earlier, complete the future of the WorkDummy in a thread and not in
// its constructor, and let wait() keep its timeout:
// https://SITE/communicate/overlap-and-futures.html""",
}


def names(name):
    """Return what each name of the dummy becomes."""
    words = name.split("_")
    return {
        "dummy-collectives": "-".join([*words, "collectives"]),
        "dummy": name,
        "Dummy": "".join(word.capitalize() for word in words),
    }


def project_files(name):
    """Return a dictionary from the path of each file of the new project to its text."""
    made = sources() | {path: english(template) for path, template in TEMPLATES.items()}
    return renamed(made, names(name) | {SITE: f"{PUBLISHED.url}en/"}) | copies()


def project_for_download():
    """Return the project that readers download, as sphinxext/code/project_downloads needs it."""
    project = {"files": sources(), "templates": TEMPLATES, "names": names("acme"), "address": SITE}
    return {names("acme")["dummy-collectives"]: project | {"texts": copies()}}


def sources():
    """Return the files that are edited for each project, still with the names of the dummy."""
    made = {path: without_operations(path, text) for path, text in texts_below(DUMMY)}
    return made | dict(texts_below(STARTER))


def english(template):
    """Return the text that a template of Sphinx makes in English."""
    environment = Environment(
        loader=FileSystemLoader(DOCS / "_templates"), extensions=["jinja2.ext.i18n"]
    )
    environment.install_null_translations()
    return environment.get_template(template).render().strip() + "\n"


def copies():
    """Return the files that are the same in each project."""
    licence = (ROOT / "LICENSE").read_text()
    origin = (
        f"This project was begun with files of {PUBLISHED.repository},\nwhich has this licence:"
    )
    made = {f"conformance/{path}": text for path, text in texts_below(SUITE)}
    return made | {"LICENSE": f"{origin}\n\n{licence}"}


def texts_below(folder):
    """Yield the path and the text of each source below a folder."""
    for path in files_below(folder):
        name = path.relative_to(folder).as_posix()
        if not MADE.search(name):
            yield name, path.read_text()


def without_operations(path, text):
    """Return a source of the dummy without its operations, and say there where others go."""
    for pattern, replacement in EDITS.items():
        text = re.sub(pattern, replacement, text)
    kept = []
    for paragraph in text.split("\n\n"):
        if not (found := OPERATION.search(paragraph)):
            kept.append(paragraph)
        elif found[1] == "allreduce":
            kept.append(HERE[Path(path).suffix])
    return "\n\n".join(kept)
