"""The audit of a backend: what it inherits, what another release changes, what asks for its name.

`live.py` and `headers.py` compare the backend with c10d's classes, `places.py` reads PyTorch's
Python, and this module has the command and its two reports.
"""

import argparse
import dataclasses
import itertools
import json
import textwrap
from pathlib import Path
from typing import Any

import torch

from c10d_conformance.audit import headers, live, places
from c10d_conformance.audit.headers import FORWARDS, Change, Class, Virtual
from c10d_conformance.audit.live import INHERITED, OVERRIDDEN, RAISED, REFUSED, UNKNOWN, Live
from c10d_conformance.options import add_options, check_writable
from c10d_conformance.preparation import probe
from c10d_conformance.settings import LIMIT, Mistake, Settings

FORMAT = 1
Json = dict[str, Any]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line behind the word `audit`."""
    new = argparse.ArgumentParser(
        prog="c10d-conformance audit",
        description="Say which virtual functions of c10d::Backend and of c10d::Work a backend "
        "overrides, refuses or inherits, what the headers of another release change for it, and "
        "where PyTorch's Python asks for its name or its device. The exit status is 2 if the call "
        "is wrong or if the backend cannot make a group of one rank, and 0 otherwise.",
    )
    add_options(new.add_argument, "--", ["backend", "import", "device"])
    new.add_argument(
        "--headers",
        metavar="FOLDER",
        help="compare with the headers of another release: its torch/include, or a folder with "
        "Backend.hpp",
    )
    new.add_argument("--json", metavar="FILE", help="write the audit as JSON, too")
    new.add_argument(
        "--limit",
        type=float,
        default=LIMIT,
        metavar="SECONDS",
        help=f"a call hangs if it does not return for so long ({LIMIT:g})",
    )
    return new


def main(arguments: list[str]) -> int:
    """Audit a backend and return the exit status."""
    options = parser().parse_args(arguments)
    backend, module, device = options.backend, getattr(options, "import"), options.device
    if not backend:
        raise Mistake("--backend is missing, for example: c10d-conformance audit --backend gloo")
    if options.limit <= 0:
        raise Mistake("--limit must be more than 0 seconds")
    if options.json:
        check_writable(Path(options.json), "json")
    other = headers.include_folder(Path(options.headers)) if options.headers else None
    settings = Settings(backend, module, device, limit=options.limit)
    probe(settings)
    found = live.examine(settings)
    classes = {name: live.installed(name) for name in found}
    audit: Json = {
        "format": FORMAT,
        "torch": torch.__version__,
        "backend": backend,
        "module": module,
        "device": device,
        "classes": [_class_entry(classes[name], result) for name, result in found.items()],
        "headers": _headers_entry(other, classes, found) if other else None,
        "places": [dataclasses.asdict(place) for place in places.find(backend, device)],
    }
    if options.json:
        Path(options.json).write_text(json.dumps(audit, indent=1) + "\n")
    print("\n".join(_text(audit)))
    return 0


def _class_entry(kind: Class, result: Live) -> Json:
    rows = []
    for name, virtual in kind.virtuals.items():
        status = result.statuses[name]
        call, text = result.answers.get(name, ("", ""))
        inherits = ""
        if status == INHERITED:
            inherits = _inherits(virtual, result)
            # The functions of Work have no bodies in the header.
            if virtual.default == headers.OWN and call in (REFUSED, RAISED):
                inherits = headers.RAISES
        elif status == OVERRIDDEN and call == REFUSED:
            status = REFUSED
        row = {"name": name, "signature": virtual.signature, "line": virtual.line}
        row |= {"status": status, "inherits": inherits, "call": call, "text": text}
        rows.append(row | {"deprecated": virtual.deprecated or result.deprecated.get(name, "")})
    head = {"name": kind.name, "type": result.type, "language": result.language}
    return head | {"virtuals": rows}


def _inherits(virtual: Virtual, result: Live) -> str:
    """Return what a call of an inherited function ends in."""
    if virtual.default != FORWARDS:
        return virtual.inherited
    if result.statuses.get(virtual.target) in (OVERRIDDEN, UNKNOWN):
        return virtual.inherited
    return headers.RAISES  # each of two names calls the other until one of them notices


def _headers_entry(folder: Path, classes: dict[str, Class], found: dict[str, Live]) -> Json:
    mine = headers.macros(live.INCLUDE / headers.FOLDER / headers.FILES["Backend"])
    theirs = headers.macros(folder / headers.FILES["Backend"])
    changes = []
    for name, old in classes.items():
        path = folder / headers.FILES[name]
        if path.is_file():
            new = headers.read_class(path, name)
            for change in headers.compare(old, new):
                effect = _effect(change, new, found[name])
                changes.append({"class": name} | dataclasses.asdict(change) | {"effect": effect})
    added, removed = sorted(theirs - mine), sorted(mine - theirs)
    return {"folder": str(folder), "macros": {"added": added, "removed": removed}} | {
        "changes": changes
    }


def _effect(change: Change, new: Class, result: Live) -> str:
    """Return what the backend notices of a change, or nothing."""
    own = result.statuses.get(change.name, INHERITED) != INHERITED
    if change.kind == "added":
        return f"inherited silently: {_inherits(new.virtuals[change.name], result)}"
    if change.kind == "default":
        return "" if own else f"inherited: {change.before} becomes {change.after}"
    if change.kind == "deprecated":
        return change.after if own else ""
    if not own:
        return ""
    if result.language == "Python" and change.kind != "signature":
        return "PyTorch no longer calls your method"
    if result.language == "Python":
        return "PyTorch calls your method with other arguments"
    return "your override stops compiling; without the word override, PyTorch no longer calls it"


def _text(audit: Json) -> list[str]:
    lines = [f"Backend {audit['backend']} on {audit['device']}, PyTorch {audit['torch']}"]
    for entry in audit["classes"]:
        lines += ["", *_class_text(entry)]
    if audit["headers"]:
        lines += ["", *_headers_text(audit["headers"])]
    title = f"{len(audit['places'])} places of PyTorch's Python treat this backend otherwise"
    lines += ["", title, "-" * len(title)]
    for file, group in itertools.groupby(audit["places"], key=lambda place: place["file"]):
        lines.append(f"torch/{file}")
        for place in group:
            lines += _place_text(place)
    return lines


def _class_text(entry: Json) -> list[str]:
    rows = entry["virtuals"]
    title = f"c10d::{entry['name']}: {len(rows)} virtual functions"
    lines = [title, "-" * len(title), f"your class: {entry['type']}, in {entry['language']}"]
    lines += _names(OVERRIDDEN, [row["name"] for row in rows if row["status"] == OVERRIDDEN])
    hidden = "unknown, because the module was built with -fvisibility-inlines-hidden"
    lines += _names(hidden, [row["name"] for row in rows if row["status"] == UNKNOWN])
    refused = [row for row in rows if row["status"] == REFUSED]
    lines += (
        [f"overridden, and refused in a group of one rank ({len(refused)}):"] if refused else []
    )
    lines += [f"    {row['name']}: {row['text']}" for row in refused]
    inherits = [row for row in rows if row["status"] == INHERITED]
    for kind in dict.fromkeys(row["inherits"] for row in inherits):
        names = [row["name"] for row in inherits if row["inherits"] == kind]
        lines += _names(f"inherited, {kind}", names)
    for row in rows:
        if row["call"] in (live.CRASHED, live.HUNG):
            lines.append(f"a call with one rank {row['call']}: {row['name']}: {row['text']}")
    old = [row for row in rows if row["deprecated"] and row["status"] in (OVERRIDDEN, REFUSED)]
    lines += [f"overridden, and deprecated by PyTorch ({len(old)}):"] if old else []
    lines += [f"    {row['name']}: {row['deprecated']}" for row in old]
    return lines


def _names(title: str, names: list[str]) -> list[str]:
    text = ", ".join(names)
    indent = {"initial_indent": "    ", "subsequent_indent": "    "}
    wrapped = textwrap.wrap(text, 100, break_long_words=False, **indent)  # type: ignore[arg-type]
    return [f"{title} ({len(names)}):", *wrapped] if names else []


def _headers_text(entry: Json) -> list[str]:
    felt = [change for change in entry["changes"] if change["effect"]]
    title = f"{len(felt)} changes in {entry['folder']} that this backend notices"
    lines = [title, "-" * len(title)]
    lines += [f"{kind} macro: {name}" for kind, names in entry["macros"].items() for name in names]
    for change in felt:
        lines.append(f"{change['class']}::{change['name']}, {change['kind']}: {change['effect']}")
        if change["kind"] == "signature":
            lines += [f"    was {change['before']}", f"    is  {change['after']}"]
    rest = [change["name"] for change in entry["changes"] if not change["effect"]]
    return lines + _names("other changes, which it does not notice", rest)


def _place_text(place: Json) -> list[str]:
    head = f"  {place['line']} in {place['function'] or 'the module'}: "
    differs = ", ".join(place["differs"])
    if place["outcome"] is None:
        return [f"{head}takes {differs}: {place['code']}"]
    outcome = f"{place['code']} is {place['outcome']}, {not place['outcome']} for {differs}"
    whole = [f"      of {place['condition']}"] if place["condition"] != place["code"] else []
    return [head + outcome, *whole]
