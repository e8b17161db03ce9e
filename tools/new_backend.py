"""Write a project with a backend of the reader's own, which begins without operations.

usage: python -m tools.new_backend NAME [FOLDER]

Its sources are those of extension/dummy_collectives with another name and without the operations,
whose zeros would be wrong results. The folder starter/ has the other files, a template makes
README.md, and conformance/ is copied. Without FOLDER, the project is NAME-collectives, beside this
repository. Readers can also download a project with the name acme, in their language.
"""

import keyword
import re
import shlex
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from jinja2 import Environment, FileSystemLoader

from sphinxext.code.project_downloads import renamed

from .project.errors import BuildError, ending_the_program
from .project.paths import DOCS, ROOT, SUITE
from .project.published import PUBLISHED
from .state.digests import files_below

DUMMY = ROOT / "extension" / "dummy_collectives"
STARTER = ROOT / "starter"
TEMPLATES = {"README.md": "project-readme.html"}
SITE = "https://SITE/"
# What a build by hand and tools leave in these folders.
MADE = re.compile(r"(^|/)(build|\S+\.egg-info|\.\w+_cache)/|\.(so|pyc)$")

NAME = re.compile("[a-z][a-z0-9]*(_[a-z0-9]+)*")
# What c10d or its tests register, and the backends of the tutorial.
TAKEN = {"fake", "gloo", "mpi", "nccl", "threaded", "ucc", "undefined", "xccl", "dummy", "shm"}

# What is left of the sources without the operations of the dummy.
EDITS = {
    r"(?m)^ *(//|#) \[/?[\w-]+\]\n": "",  # where a listing of a page begins or ends
    r"// A backend that implements .*\n// it sets every .*": "// Each rank has one in each group.",
    "A torch.distributed backend that sets .*zero": "The torch.distributed backend dummy",
    "The dummy c10d backend": "The c10d backend dummy",
}
OPERATION = re.compile(r"\b(setToZero|allreduce|allgather)\(")
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
// To return earlier, complete the future of the WorkDummy in a thread:
// https://SITE/communicate/asynchronous-work.html""",
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


def project_downloads():
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


def check_name(name):
    """Raise BuildError unless a backend can have the name."""
    if not name:
        raise BuildError("name the backend: make new-backend NAME=acme")
    if not NAME.fullmatch(name):
        raise BuildError(
            f"NAME={name}: a name has lower-case letters and digits, begins with a letter, "
            "and may have single underscores between them: [a-z][a-z0-9_]*"
        )
    if keyword.iskeyword(name):
        raise BuildError(f"NAME={name} is a keyword of Python: choose another name")
    if name in TAKEN:
        raise BuildError(f"NAME={name}: there is a backend of this name: choose another one")


def check_folder(folder):
    """Raise BuildError unless the folder is new or empty, and outside this repository."""
    if folder.is_relative_to(ROOT):
        raise BuildError(f"FOLDER={folder} is inside this repository: choose one outside")
    if len(str(folder).split()) > 1:
        raise BuildError(
            f"FOLDER={folder} contains a space, which PyTorch's build tools cannot handle: "
            "choose another one"
        )
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise BuildError(f"FOLDER={folder} exists and is no empty folder: choose another one")


def write(folder, files):
    """Write all files into a folder that is new or empty, or nothing at all."""
    top = folder  # What is renamed in the end: the first folder of the path that is new.
    while not top.parent.exists():
        top = top.parent
    with TemporaryDirectory(prefix=".new-backend-", dir=top.parent) as temporary:
        whole = Path(temporary, top.name)
        for name, text in files.items():
            path = whole / folder.relative_to(top) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        whole.rename(top)


def next_commands(files):
    """Return the commands that the README of the project begins with."""
    return re.search(r"```sh\n(.*?)```", files["README.md"], re.S)[1].splitlines()


def new_backend(name, folder=""):
    """Write the project; print what to run in it. Raises BuildError if nothing was written."""
    check_name(name)
    files = project_files(name)
    try:
        folder = Path(folder or ROOT.parent / names(name)["dummy-collectives"])
        folder = folder.expanduser().resolve()
        check_folder(folder)
        write(folder, files)
    except (OSError, RuntimeError) as error:
        raise BuildError(f"cannot write {folder}: {getattr(error, 'strerror', error)}") from None
    print(f"{folder} has the backend {name}. Run, in an environment with PyTorch:\n")
    for command in [f"cd {shlex.quote(str(folder))}", *next_commands(files)]:
        print(f"    {command}")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    with ending_the_program():
        new_backend(*sys.argv[1:])


if __name__ == "__main__":
    main()
