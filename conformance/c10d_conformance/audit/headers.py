"""The virtual functions of c10d's classes, read from PyTorch's headers, and what differs in others.

A parser of C++ would leave out the bodies, which say what a backend inherits, so this reads them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from c10d_conformance.settings import Mistake

FOLDER = "torch/csrc/distributed/c10d"
FILES = {"Backend": "Backend.hpp", "Work": "Work.hpp"}
# The base of both classes, whose virtual functions come first.
ROOT_CLASS, ROOT_FILE = "intrusive_ptr_target", "c10/util/intrusive_ptr.h"

# Kinds of what a virtual function does that no class overrides.
RAISES, FORWARDS, WARNS, NOTHING = "raises", "forwards", "warns", "does nothing"
RETURNS, OWN, PURE = "returns", "has code of its own", "is pure virtual"

_IGNORED = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:\\\n|[^\n])*', re.DOTALL | re.MULTILINE
)
_RAISES = re.compile(r"\b(?:TORCH_CHECK\w*|TORCH_INTERNAL_ASSERT)\s*\(\s*false\b|\bthrow\b")


@dataclass(frozen=True)
class Virtual:
    """A virtual function: `default` is a kind, `target` what it returns or which name it calls."""

    name: str
    signature: str
    line: int
    default: str
    target: str = ""
    deprecated: str = ""  # what the header says, or nothing

    @property
    def inherited(self) -> str:
        """Return in words what a class inherits that does not override it."""
        if self.default == FORWARDS:
            return f"calls {self.target}"
        return f"{self.default} {self.target}".strip()


@dataclass
class Class:
    """A class of a header: its virtual functions in order, and the names of its other functions."""

    name: str
    virtuals: dict[str, Virtual] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    bodies: dict[str, str] = field(default_factory=dict)  # of all functions that have one


def include_folder(folder: Path) -> Path:
    """Return the folder that has Backend.hpp: the given one, or that below torch/include."""
    for candidate in (folder, folder / FOLDER):
        if (candidate / FILES["Backend"]).is_file():
            return candidate
    raise Mistake(f"{folder}: neither Backend.hpp nor {FOLDER}/Backend.hpp is in this folder")


def read_class(path: Path, name: str) -> Class:
    """Return a class of a header."""
    try:
        text = path.read_text()
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {error.strerror}") from None
    # What is ignored becomes blanks, so that positions stay those of the file.
    code = _IGNORED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found = re.search(rf"\b(?:class|struct)\s+(?:\w+\s+)?{name}\b\s*(?::[^;{{]*)?\{{", code)
    if not found:
        raise Mistake(f"{path} has no class {name}")
    result, declared = Class(name), []
    for start, brace, end in _members(code, found.end()):
        head, comment = _head(code[start:brace]), text[start:brace]
        opening = _opening(head)
        if not opening or re.match(r"(?:friend|using|template|struct|class|enum)\b", head):
            continue
        function, signature = _signature(head, opening)
        result.bodies[function] = text[brace:end]
        if re.search(r"\b(?:virtual|override|final)\b", head):
            declared.append((function, signature, start, brace, end, comment))
        else:
            result.others.add(function)
    names = {function for function, *_ in declared}
    for function, signature, start, brace, end, comment in declared:
        if function.startswith("~") or "override" in signature or "final" in signature:
            continue
        line = code.count("\n", 0, start + len(code[start:brace]) - len(code[start:brace].lstrip()))
        default, target = _default(code[brace:end], text[brace:end], signature, names - {function})
        note = _deprecation(comment + text[brace:end])
        signature = re.sub(r"\s*= 0$", "", signature)
        result.virtuals[function] = Virtual(function, signature, line + 1, default, target, note)
    return result


def macros(path: Path) -> set[str]:
    """Return the macros of a Backend.hpp by which a source can tell what the header has."""
    return set(re.findall(r"^#define (C10D_BACKEND_HAS_\w+)", path.read_text(), re.MULTILINE))


@dataclass(frozen=True)
class Change:
    """A difference of another header: `before` and `after` are signatures, or what is inherited."""

    kind: str  # added, removed, signature, not virtual, default, deprecated
    name: str
    before: str
    after: str


def compare(old: Class, new: Class) -> list[Change]:
    """Return how the virtual functions of a class differ in another header."""
    changes = []
    for name in dict.fromkeys([*old.virtuals, *new.virtuals]):
        before, after = old.virtuals.get(name), new.virtuals.get(name)
        if before is None and after is not None:
            changes.append(Change("added", name, "", after.signature))
        elif before is not None and after is None:
            gone = "not virtual" if name in new.others else "removed"
            changes.append(Change(gone, name, before.signature, ""))
        elif before is not None and after is not None:
            if before.signature != after.signature:
                changes.append(Change("signature", name, before.signature, after.signature))
            if before.inherited != after.inherited:
                changes.append(Change("default", name, before.inherited, after.inherited))
            if after.deprecated and not before.deprecated:
                changes.append(Change("deprecated", name, "", after.deprecated))
    return changes


def _members(code: str, position: int) -> Iterator[tuple[int, int, int]]:
    """Yield for each member of a class its start, the end of its head, and its end."""
    start, depth = position, 0
    brace = -1
    while position < len(code):
        character = code[position]
        if character in "({":
            if character == "{" and depth == 0:
                brace = position
            depth += 1
        elif character in ")}":
            depth -= 1
            if depth < 0:
                return  # the end of the class
        if depth == 0 and (character == ";" or (character == "}" and brace >= 0)):
            yield start, brace if brace >= 0 else position, position + 1
            start, brace = position + 1, -1
        position += 1


def _head(code: str) -> str:
    """Return a declaration in one line, without what does not belong to its type."""
    head = re.sub(r"\s+", " ", code).strip(" ;")
    head = re.sub(r"^(?:(?:public|protected|private) ?: ?)+", "", head)
    return re.sub(r"\[\[.*?\]\] ?|\bTORCH_API ", "", head)


def _opening(head: str) -> int:
    """Return where the arguments of a function begin, or 0 for what is no function."""
    return next((at for at, sign in enumerate(head) if sign == "(" and _flat(head[:at])), 0)


def _signature(head: str, opening: int) -> tuple[str, str]:
    """Return the name of a function, and its declaration without names of arguments, defaults."""
    match = re.search(r"(~?\w+) ?$", head[:opening])
    depth, closing = 0, opening
    for closing in range(opening, len(head)):
        depth += (head[closing] == "(") - (head[closing] == ")")
        if depth == 0:
            break
    arguments = [_type(part) for part in _split(head[opening + 1 : closing])]
    name = match[1] if match else head[:opening]
    result = re.sub(
        r"\b(?:virtual|static|explicit|inline) ", "", head[: match.start()] if match else ""
    )
    rest = head[closing + 1 :].split(" : ")[0].strip()  # without the initializers of a constructor
    return name, f"{result.strip()} {name}({', '.join(arguments)}) {rest}".strip()


def _flat(text: str) -> bool:
    """Tell whether all angle brackets are closed."""
    return text.count("<") == text.count(">")


def _split(arguments: str) -> Iterator[str]:
    part = ""
    for piece in arguments.split(","):
        part = f"{part},{piece}" if part else piece
        if _flat(part) and part.count("(") == part.count(")") and part.strip():
            yield part.strip()
            part = ""


def _type(argument: str) -> str:
    argument = argument.split("=")[0].strip()
    match = re.fullmatch(r"(.*[\s&*>])\w+", argument)
    named = match and match[1].strip() not in ("const", "unsigned")
    return re.sub(r"\s*([&*<>])\s*", r"\1", match[1] if match and named else argument).strip()


def _default(code: str, text: str, signature: str, names: set[str]) -> tuple[str, str]:
    """Return what a body does: a kind, and the name that it calls or the value that it returns."""
    if "{" not in code:
        return (PURE if signature.endswith("= 0") else OWN), ""
    body = re.sub(r"\s+", " ", code.strip().rstrip(";")[1:-1]).strip(" ;")
    forward = re.search(r"\breturn (\w+)\(", body)
    if forward and forward[1] in names:
        return FORWARDS, forward[1]
    if _RAISES.search(body):
        return RAISES, ""
    if body.startswith("TORCH_WARN"):
        return WARNS, ""
    if not body:
        return NOTHING, ""
    value = re.fullmatch(r"return ([\w:]+|\{\})", body)
    return (RETURNS, value[1].split("::")[-1]) if value else (OWN, "")


def _deprecation(text: str) -> str:
    """Return the sentence by which a header deprecates a function, or nothing."""
    words = re.sub(r"\s*\n\s*//[ \t]*|\s+", " ", text)
    found = re.search(r"[^.:{]*\bdeprecated\b[^.\n{]*(?:\.(?= |$)|(?=\{))", words, re.IGNORECASE)
    if not found:
        return ""
    return found[0].strip(' /*"').rstrip(".")
