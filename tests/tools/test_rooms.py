"""The rooms of tools/ are in order, and each command of the Makefile is found there."""

import ast
import re

from tools.project.paths import ROOT

TOOLS = ROOT / "tools"
ROOMS = re.search(r"^    (\w+(?: → \w+)+)$", (TOOLS / "README.md").read_text(), re.M)[1].split(
    " → "
)
COMMANDS = {path.stem for path in TOOLS.glob("*.py")} - {"__init__"}


def imported(path, code):
    """Yield the line and the module of tools/ of each import, such as ("state", "records")."""
    is_inside = path.is_relative_to(TOOLS)
    package = path.relative_to(TOOLS).parent.parts if is_inside else ()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names = [(0, name.name) for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [(node.level, f"{module}.{name.name}".strip(".")) for name in node.names]
        else:
            continue
        for level, name in names:
            parts = name.split(".")
            if level and is_inside:
                yield node.lineno, [*package[: len(package) - level + 1], *parts]
            elif not level and parts[0] == "tools":
                yield node.lineno, parts[1:]


def faults(path, code):
    """Say which imports go the wrong way: each with its line."""
    name = path.relative_to(ROOT).as_posix()
    own, *_ = path.relative_to(TOOLS).parts if path.is_relative_to(TOOLS) else (None,)
    for line, [room, *_] in imported(path, code):
        if room in COMMANDS:
            yield f"{name}:{line}: imports the command {room}"
        elif own in ROOMS and ROOMS.index(room) > ROOMS.index(own):
            yield f"{name}:{line}: {own} imports {room}, which comes after it"


def test_the_drawing_names_all_rooms():
    assert {path.parent.name for path in TOOLS.glob("*/__init__.py")} == set(ROOMS)


def test_imports_go_one_way():
    files = [*TOOLS.rglob("*.py"), ROOT / "conf.py", *(ROOT / "sphinxext").rglob("*.py")]
    assert [fault for path in files for fault in faults(path, path.read_text())] == []


def test_sphinx_extensions_know_nothing_of_the_tools():
    for path in (ROOT / "sphinxext").rglob("*.py"):
        assert not list(imported(path, path.read_text())), path


def test_each_command_of_the_makefile_is_found_by_its_name():
    recipes = re.findall(r"^([\w-]+):.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    calling = [name for name, recipe in recipes if "tools" in recipe.replace("tools/env", "")]
    assert len(calling) > 15
    for name in calling:
        found = [path for path in TOOLS.iterdir() if path.stem == name.replace("-", "_")]
        assert len(found) == 1, name
