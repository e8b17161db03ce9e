"""Where PyTorch's Python treats a backend otherwise because of its name or the type of its device.

Only what a comparison itself says counts: of an expression with the name of a backend of PyTorch,
its class, or a type of device. `fake`, which moves no data, is no such name.
"""

import ast
import re
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

GROUP = "torch.distributed.backends"
# A device's type matters where programs are parallel; a name of a backend, everywhere.
DEVICE_FOLDERS = ("distributed/", "nn/parallel/")
STARTING = ("init_process_group", "new_group", "init_device_mesh", "split_group")


@dataclass(frozen=True)
class Place:
    """A condition of PyTorch's sources, or a call that names another backend.

    `differs` has the names, or the device, for which it has the other outcome than `outcome`.
    """

    file: str
    line: int
    function: str
    code: str  # a comparison, or a call
    condition: str  # that the comparison is a part of, or the comparison
    outcome: bool | None  # of a comparison, for the audited backend
    differs: tuple[str, ...]


def names_of_torch() -> set[str]:
    """Return the names of the backends of PyTorch that move data."""
    names = {value for key, value in vars(dist.Backend).items() if key.isupper()}
    names |= {x.name for x in entry_points(group=GROUP) if x.value.startswith("torch.")}
    return {name for name in names if isinstance(name, str)} - {"undefined", "fake"}


def find(backend: str, device: str, root: Path = Path(torch.__file__).parent) -> list[Place]:
    """Return all places of PyTorch's sources where the backend differs, in their order."""
    names = names_of_torch()
    words = [form for name in sorted(names) for form in _forms(name)]
    # What PyTorch has for CPUs, gloo gets too; and cuda is what its own code is written for.
    other_device = [] if device in ("cpu", "cuda") else ["cuda"]
    places: list[Place] = []
    for path in sorted(root.rglob("*.py")):
        file = path.relative_to(root).as_posix()
        if file.startswith("testing/") or names & set(re.split("[^a-z]+", file)):
            continue  # what programs do not run; the code of one backend, which its path names
        text = path.read_text(encoding="utf-8", errors="replace")
        devices = other_device if file.startswith(DEVICE_FOLDERS) else []
        if not any(word in text for word in [*words, *devices]):
            continue
        visitor = _Visitor(file, names, backend.lower(), device, *devices)
        visitor.visit(ast.parse(text))
        places += visitor.places
    return places


def _forms(name: str) -> list[str]:
    """Return how a source may name a backend."""
    classes = [f"ProcessGroup{form}" for form in (name.upper(), name.capitalize())]
    return [f"'{name}'", f'"{name}"', f"Backend.{name.upper()}", *classes]


class _Visitor(ast.NodeVisitor):
    """Collects the places of one file."""

    def __init__(
        self, file: str, names: set[str], backend: str, device: str, other_device: str = ""
    ) -> None:
        self.places: list[Place] = []
        self._file, self._names, self._backend = file, names, backend
        self._device, self._other_device = device, other_device
        self._functions: list[str] = []
        self._conditions: list[ast.AST] = []
        self._constants: dict[str, set[str]] = {}

    def visit_FunctionDef(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ) -> None:
        self._functions.append(node.name)
        self.generic_visit(node)
        self._functions.pop()

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Assign(self, node: ast.Assign) -> None:
        values = self._values(node.value)
        if values and isinstance(node.targets[0], ast.Name):
            self._constants[node.targets[0].id] = values
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp | ast.UnaryOp) -> None:
        self._conditions.append(node)
        self.generic_visit(node)
        self._conditions.pop()

    visit_UnaryOp = visit_BoolOp

    def visit_Compare(self, node: ast.Compare) -> None:
        left, right = node.left, node.comparators[0]
        member = isinstance(node.ops[0], (ast.In, ast.NotIn))
        values = self._values(right) or (set() if member else self._values(left))
        if len(node.ops) == 1 and values:
            negated = isinstance(node.ops[0], (ast.NotEq, ast.NotIn, ast.IsNot))
            subject = left if self._values(right) else right
            if "device" in ast.unparse(subject).lower():
                self._note_device(node, values, negated)
            else:
                self._note(node, values, negated)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr == "is_cuda":
            self._note_device(node, {"cuda"}, False)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        function = _last_name(node.func)
        if function == "isinstance" and len(node.args) == 2:
            kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
            names = {self._backend_of(_last_name(kind)) for kind in kinds}
            self._note(node, names, False)
        elif name := self._backend_of(function):
            self._add(node, None, self._names & {name})
        elif function in STARTING:
            for given in [*node.args, *(x.value for x in node.keywords if x.arg == "backend")]:
                self._add(given, None, self._names & self._values(given), node)
        self.generic_visit(node)

    def _backend_of(self, kind: str) -> str:
        """Return the backend of a class such as ProcessGroupGloo, but not where one is made."""
        name = kind.removeprefix("ProcessGroup").lower() if kind.startswith("ProcessGroup") else ""
        return "" if any(name in function.split("_") for function in self._functions) else name

    def _values(self, node: ast.AST) -> set[str]:
        """Return the strings of a literal, a constant of the file or an attribute of Backend."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return {node.value}
        if isinstance(node, (ast.Set, ast.Tuple, ast.List)):
            parts = [self._values(element) for element in node.elts]
            return set().union(*parts) if all(parts) else set()
        if isinstance(node, ast.Attribute) and node.attr.isupper():
            return {node.attr.lower()} if ast.unparse(node.value).endswith("Backend") else set()
        return self._constants.get(node.id, set()) if isinstance(node, ast.Name) else set()

    def _note(self, node: ast.AST, values: set[str], negated: bool) -> None:
        inside = self._backend in values
        if self._names & values:
            same = values if inside else self._names - values
            self._add(node, inside != negated, self._names - same)

    def _note_device(self, node: ast.AST, values: set[str], negated: bool) -> None:
        ours, other = self._device in values, self._other_device in values
        if self._other_device and ours != other:
            self._add(node, ours != negated, {self._other_device})

    def _add(
        self, node: Any, outcome: bool | None, differs: set[str], call: ast.AST | None = None
    ) -> None:
        if not differs - {self._backend}:
            return
        whole = self._conditions[0] if self._conditions and outcome is not None else call or node
        function, code = ".".join(self._functions), ast.unparse(call or node)
        place = (self._file, node.lineno, function, code, ast.unparse(whole), outcome)
        self.places.append(Place(*place, tuple(sorted(differs - {self._backend}))))


def _last_name(node: ast.AST) -> str:
    """Return `name` of `name` and of `module.name`, or nothing."""
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
