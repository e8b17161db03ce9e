"""What a backend overrides: read from the objects of a group of one rank, in a process of its own.

The virtual table of a compiled class shows it. A slot is inherited if it points at the function of
c10d's own table, or at a copy of it: a module has copies of inline functions, under their symbols.
This holds for the C++ ABI of Linux and macOS. What a call does is found out by calling.
"""

import ctypes
import multiprocessing
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from c10d_conformance.audit import headers
from c10d_conformance.pool import exit_text, import_backend
from c10d_conformance.rank import is_unsupported
from c10d_conformance.settings import Mistake, Settings

OVERRIDDEN, INHERITED, UNKNOWN = "overridden", "inherited", "unknown"
WORKED, REFUSED, RAISED, CRASHED, HUNG = "worked", "refused", "raised", "crashed", "hung"

START_LIMIT = 120  # seconds to import the backend and to make a group
STARTS = 4  # so many calls may end or block the process before no more are made
INCLUDE = Path(torch.__file__).parent / "include"
WORD = ctypes.sizeof(ctypes.c_void_p)
# The classes through which c10d calls a class in Python, and their headers.
TRAMPOLINES = {
    "Backend": ("PyBackend", "py/PyBackend.hpp"),
    "Work": ("PyWork", "py/PyProcessGroup.hpp"),
}

# The calls: functions with the same arguments, which `t` makes, a tensor of four elements.
_CALLS: list[tuple[str, Any]] = [
    ("broadcast allreduce reduce allreduce_coalesced", lambda t: [[t()]]),
    ("allreduce_sparse", lambda t: [[t().to_sparse()]]),
    ("allgather allgather_coalesced gather", lambda t: [[[t()]], [t()]]),
    ("scatter reduce_scatter", lambda t: [[t()], [[t()]]]),
    ("all_gather_single _allgather_base gather_single gather_into_tensor", lambda t: [t(), t()]),
    ("reduce_scatter_single _reduce_scatter_base", lambda t: [t(), t()]),
    ("all_gather_single_coalesced reduce_scatter_single_coalesced", lambda t: [[t()], [t()]]),
    ("alltoall", lambda t: [[t()], [t()]]),
    ("all_to_all_single alltoall_base", lambda t: [t(), t(), [], []]),
    ("barrier monitoredBarrier getSequenceNumberForGroup get_reconfigure_handle", lambda t: []),
    ("supportsSplitting supportsCoalescing supportsTimeEstimation", lambda t: []),
    ("supportsShrinking supportsReconfigure supportsWindow supportsAbortHooks", lambda t: []),
    ("supportsCompletionHooks getBackendOptions getMemAllocator getMemoryStats", lambda t: []),
    ("new_window", lambda t: [t()]),
    ("supportsTensorAlloc", lambda t: [t().device]),
    ("send recv", lambda t: [[t()], 0, 0]),
    ("recvAnysource", lambda t: [[t()], 0]),
    ("startCoalescing endCoalescing", lambda t: []),  # the last: the one after the other
]
# Their names in Python, where these are not the same words with underscores.
_BINDINGS = {
    "startCoalescing": "_start_coalescing",
    "endCoalescing": "_end_coalescing",
    "supportsTimeEstimation": "_supports_time_estimate",
    "getSequenceNumberForGroup": "_get_sequence_number_for_group",
    "getBackendOptions": "options",
    "getMemAllocator": "mem_allocator",
    "getMemoryStats": "memory_stats",
    "getSequencenumber": "_get_sequence_number",
    "getDuration": "_get_duration",
}
_OF_WORK = "isCompleted isSuccess exception sourceRank result getFuture getFutureResult"
_OF_WORK += " getDuration getSequencenumber synchronize wait"


@dataclass
class Live:
    """What was found out of one class; a call has one of the kinds above, and a text."""

    type: str
    language: str
    statuses: dict[str, str]
    answers: dict[str, tuple[str, str]] = field(default_factory=dict)
    deprecated: dict[str, str] = field(default_factory=dict)


def installed(name: str) -> headers.Class:
    """Return a class of the headers of the installed PyTorch."""
    return headers.read_class(INCLUDE / headers.FOLDER / headers.FILES[name], name)


def examine(settings: Settings) -> dict[str, Live]:
    """Return what is found out of the backend, and of its Work if an operation returns one."""
    found: dict[str, Live] = {}
    for _ in range(STARTS):
        if _examine_once(settings, found):
            break
    for name, live in found.items():
        _settle(installed(name), live)
    return found


def _examine_once(settings: Settings, found: dict[str, Live]) -> bool:
    """Complete `found` in a new process; return False if a call ended or blocked that."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    with tempfile.TemporaryFile() as output:
        process = context.Process(
            target=_serve, args=(settings, found, theirs, output.fileno()), daemon=True
        )
        process.start()
        theirs.close()
        call: tuple[str, str] | None = None
        while True:
            if not ours.poll(settings.limit if call else START_LIMIT):
                process.kill()
                kind, text = HUNG, "does not return"
                break
            try:
                message = ours.recv()
            except EOFError:
                process.join()
                kind, text = CRASHED, f"the process {exit_text(process.exitcode)}"
                break
            if message is None:
                process.join()
                return True
            if isinstance(message, str):
                process.join()
                raise Mistake(message)
            call = message if isinstance(message, tuple) else call
            if isinstance(message, dict):
                found.update(message)
        process.join()
        output.seek(0)
        printed = output.read().decode(errors="replace").strip().splitlines()[-3:]
    text = "; ".join([text, *printed])
    if call is None:
        raise Mistake(f"a group of one rank with backend {settings.backend!r}: {text}")
    found[call[0]].answers[call[1]] = (kind, text)
    return False


def _serve(settings: Settings, found: dict[str, Live], pipe: Connection, output: int) -> None:
    """Send what is found, before a call its name, None at the end; a text if there is no group."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.pop("TORCH_DISTRIBUTED_DEBUG", None)  # it wraps the backend
    device = torch.device(settings.device)
    try:
        import_backend(settings)
        dist.init_process_group(settings.backend, store=dist.HashStore(), rank=0, world_size=1)
        if type(dist.group.WORLD) is not dist.ProcessGroup:
            own = type(dist.group.WORLD).__name__
            raise TypeError(f"{own} is a ProcessGroup; the audit is for classes of Backend")
        backend = dist.group.WORLD._get_backend(device)
        found.setdefault("Backend", _look_at("Backend", backend))
    except Mistake as mistake:
        pipe.send(str(mistake))
        os._exit(0)
    except Exception as error:
        name = f"a group of one rank with backend {settings.backend!r}"
        pipe.send(f"{name}: {type(error).__name__}: {_first_line(str(error))}")
        os._exit(0)

    def tensor() -> torch.Tensor:
        return torch.ones(4, device=device)

    calls = _Calls(settings.backend, found, pipe, output)
    for names, arguments in _CALLS:
        for name in names.split():
            if found["Backend"].statuses.get(name, INHERITED) == INHERITED:
                continue
            result = calls.make("Backend", backend, name, arguments(tensor))
            if isinstance(result, dist.Work) and "Work" not in found:
                found["Work"] = _look_at("Work", result)
                for of_work in _OF_WORK.split():
                    calls.make("Work", result, of_work, [])
    pipe.send(found)
    pipe.send(None)
    os._exit(0)  # without the end of the group, which another rank may be needed for


@dataclass
class _Calls:
    """Makes calls, and tells the process that waits what they did."""

    backend: str
    found: dict[str, Live]
    pipe: Connection
    output: int

    def make(self, kind: str, thing: Any, name: str, arguments: list[Any]) -> Any:
        """Call a function unless that was done before, and return its result."""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        python = _BINDINGS.get(name, words)
        live = self.found[kind]
        if name in live.answers or not hasattr(type(thing), python):
            return None
        self.pipe.send(self.found)
        self.pipe.send((kind, name))
        printed = os.fstat(self.output).st_size
        result = None
        try:
            result = getattr(thing, python)
            result = result(*arguments) if callable(result) else result
            live.answers[name] = WORKED, str(result) if isinstance(result, bool) else ""
        except Exception as error:
            refused = is_unsupported(error, self.backend, name)
            # The second line says which function of which file has raised it.
            text = "\n".join(str(error).splitlines()[:2]) or type(error).__name__
            live.answers[name] = REFUSED if refused else RAISED, text
        text = os.pread(self.output, 10_000, printed).decode(errors="replace")
        warning = re.search(r"Warning: (.*?\bdeprecated\b)", text)
        if warning:
            live.deprecated[name] = warning[1]
        return result


def _look_at(name: str, thing: Any) -> Live:
    """Return what the class of a Backend or Work overrides."""
    # In a Python object of pybind11, the address of the C++ object follows the head.
    table = _word(_word(id(thing) + 2 * WORD))
    type_name = _demangled(ctypes.string_at(_word(_word(table - WORD) + WORD)))
    virtuals = installed(name).virtuals
    trampoline, file = TRAMPOLINES[name]
    if type_name.split("::")[-1] != trampoline:
        return Live(type_name, "C++", dict(_compiled(name, table)))
    bodies = headers.read_class(INCLUDE / headers.FOLDER / file, trampoline).bodies
    base = getattr(torch._C._distributed_c10d, name)
    own = [vars(one) for one in type(thing).__mro__ if issubclass(one, base) and one is not base]
    statuses = {}
    for function in virtuals:
        quoted = re.search(r'"(\w+)"', bodies.get(function, ""))
        python = quoted[1] if quoted else "options" if "Options" in function else function
        known = function in bodies and any(python in names for names in own)
        statuses[function] = OVERRIDDEN if known else INHERITED
    return Live(f"{type(thing).__module__}.{type(thing).__qualname__}", "Python", statuses)


def _compiled(name: str, table: int) -> Iterator[tuple[str, str]]:
    """Yield the status of each virtual function of a compiled class, from its virtual table."""
    root = headers.read_class(INCLUDE / headers.ROOT_FILE, headers.ROOT_CLASS)
    functions = list(installed(name).virtuals)
    first = 2 + len(root.virtuals)  # two destructors come before all others
    of_c10d = ctypes.addressof(ctypes.c_char.in_dll(_torch(), f"_ZTVN4c10d{len(name)}{name}E"))
    of_c10d += 2 * WORD  # to its first slot
    slots = []
    for slot, function in enumerate(functions, first):
        address = _word(table + slot * WORD)
        file, symbol = _symbol(address)
        copied = re.match(rf"_ZNK?4c10d{len(name)}{name}(\d+)", symbol)
        if copied:
            copied_name = symbol[copied.end() :][: int(copied[1])]
            if copied_name != function:
                raise Mistake(
                    f"slot {slot} of the virtual table is {copied_name}, and {headers.FILES[name]} "
                    f"of PyTorch {torch.__version__} has {function} there: build the backend again"
                )
        inherited = bool(copied) or address == _word(of_c10d + slot * WORD)
        slots.append((function, file, inherited))
    # A library that hides its copies of inline functions has no inherited slot to be known by.
    shows = {file for _, file, inherited in slots if inherited}
    for function, file, inherited in slots:
        clear = file in shows or name == "Work"  # whose functions are not inline
        yield function, INHERITED if inherited else OVERRIDDEN if clear else UNKNOWN


def _settle(kind: headers.Class, live: Live) -> None:
    """Decide by the calls what the virtual table does not show, and shorten their texts."""
    for name, virtual in kind.virtuals.items():
        done, text = live.answers.get(name, ("", ""))
        if live.statuses[name] == UNKNOWN:
            raised_in = re.search(r"\nException raised from (\w+) at \S*?(\w+\.\w+):", text)
            if raised_in and raised_in[1] == name and raised_in[2] == headers.FILES["Backend"]:
                live.statuses[name] = INHERITED
            elif virtual.default == headers.RAISES and (raised_in or done == WORKED):
                live.statuses[name] = OVERRIDDEN
            elif virtual.default == headers.RETURNS and done == WORKED:
                if text.lower() != virtual.target:
                    live.statuses[name] = OVERRIDDEN
        if live.statuses[name] == INHERITED and kind.name == "Backend":
            live.answers.pop(name, None)
        elif done in (REFUSED, RAISED):
            live.answers[name] = (done, _first_line(text))


class _Info(ctypes.Structure):
    """Dl_info of dladdr(3)."""

    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    ]


def _symbol(address: int) -> tuple[str, str]:
    """Return the library that has an address, and the symbol there, which may be hidden."""
    info = _Info()
    ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(info))
    return (info.file or b"").decode(), (info.symbol or b"").decode()


def _torch() -> ctypes.CDLL:
    return ctypes.CDLL(str(next((INCLUDE.parent / "lib").glob("libtorch_cpu.*"))))


def _demangled(name: bytes) -> str:
    demangle = _torch().__cxa_demangle
    demangle.restype = ctypes.c_char_p
    return (demangle(name.lstrip(b"*"), None, None, None) or name).decode()


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def _first_line(text: str) -> str:
    return next(iter(text.splitlines()), "")
