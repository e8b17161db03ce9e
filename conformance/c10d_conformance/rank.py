"""The first argument of a check in each rank: its place in the group, and reports of cases."""

import contextlib
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from c10d_conformance import verdicts
from c10d_conformance.board import Board
from c10d_conformance.registry import Check
from c10d_conformance.settings import POLL, Settings
from c10d_conformance.verdicts import CaseReport, Status


class Wrong(Exception):
    """A promise is broken; the text says which value was expected and which was there."""


class Rank:
    """One rank of a check."""

    def __init__(
        self,
        rank: int,
        size: int,
        settings: Settings,
        address: str,
        board: Board,
        log: int,
        folder: str,
    ) -> None:
        self.rank = rank
        self.size = size
        self.backend = settings.backend
        self.module = settings.module
        self.device = torch.device("cpu")  # until `use_device`: the backend's module may name it
        self.quick = settings.quick
        self.has_streams = False
        self.host_waits = settings.host_waits
        self.folder = folder
        self.address = address  # where a program of rank 0 can be reached
        self.operation = ""
        self.example: Any = None  # of a check whose input is drawn
        self.poll = POLL
        self._board = board
        self._log = log
        self._skip = 0
        self._index = 0
        self._keeps_group = False
        self._groups = 0
        self._name = ""

    @property
    def next_case(self) -> int:
        """Return the number of the case that has not begun."""
        return self._index + 1

    @property
    def world(self) -> Any:
        """Return the default group."""
        return dist.group.WORLD

    def use_device(self, name: str) -> None:
        """Let tensors be on a device of this type, each rank on its own where there are several."""
        self.device = torch.device(name)
        if self.device.type != "cpu" and (count := torch.accelerator.device_count()):
            self.device = torch.device(self.device.type, self.rank % count)
            self.has_streams = True
        self.make_current()

    def make_current(self) -> None:
        """Make the device of this rank the current one of the calling thread."""
        if self.has_streams:
            torch.accelerator.set_device_index(self.device.index)

    def synchronize(self) -> None:
        """Return when the device has ended all that it got; on the CPU, at once."""
        if self.has_streams:
            try:
                torch.accelerator.synchronize(self.device)
            except RuntimeError as error:
                raise Wrong(f"the device fails: {error}") from error

    def own_stream(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which another stream is current; on the CPU it does nothing."""
        return torch.Stream(self.device) if self.has_streams else contextlib.nullcontext()

    def start(self, check: Check, skip: int, example: Any, poll: float) -> None:
        """Begin a check whose first `skip` cases have been run already."""
        self.example, self.poll = example, poll
        self._skip, self._index, self.operation = skip, 0, check.capability
        self._keeps_group = check.group

    def case(self, name: str, body: Callable[..., Any], *arguments: Any) -> None:
        """Run `body(*arguments)`, one case, and report how it ended.

        The body returns None, or ABSENT if this rank has no part in the case; it raises Wrong for
        a wrong result. Any other exception may be a refusal. All ranks run the same cases.
        """
        self._index += 1
        if self._index <= self._skip:
            return
        self._name = name
        self._board.begin(self.rank, name)
        kind, text, trace = verdicts.RIGHT, "", ""
        try:
            try:
                if body(*arguments) == verdicts.ABSENT:
                    kind = verdicts.ABSENT
            finally:
                if self._keeps_group:
                    self.synchronize()  # the next case must not meet the streams of this one
        except Wrong as error:
            kind, text = verdicts.WRONG, str(error)
        except (RuntimeError, ValueError, TypeError) as error:
            kind, text, trace = verdicts.RAISED, str(error), traceback.format_exc()
            if isinstance(error, RecursionError):
                kind = verdicts.WRONG
        except Exception as error:
            kind, trace = verdicts.WRONG, traceback.format_exc()
            text = f"{type(error).__name__}: {error}"
        self._report(name, Status(kind, text, trace))
        self._board.end(self.rank)
        if kind in (verdicts.WRONG, verdicts.RAISED):
            # If a rank has stopped early, the next case must not meet the rest of this one.
            begun = self._board.numbers(self.rank)[0]
            self._board.wait(lambda numbers: numbers[1] >= begun)

    def meet(self) -> None:
        """Return when all ranks have called this; the backend has no part in it."""
        self._board.count(self.rank)
        mine = self._board.numbers(self.rank)[2]
        self._board.wait(lambda numbers: numbers[2] >= mine)

    def share(self, text: str) -> list[str]:
        """Return the texts that all ranks give here; the backend has no part in it."""
        path = f"{self.folder}/share-{{}}"
        with open(path.format(self.rank), "w") as file:
            file.write(text)
        self.meet()
        texts = []
        for rank in range(self.size):
            with open(path.format(rank)) as file:
                texts.append(file.read())
        self.meet()
        return texts

    def leave(self) -> None:
        """Report that this rank has no part in the case, which it ends with its process."""
        self._report(self._name, Status(verdicts.ABSENT))
        self._board.leave(self.rank)

    def _report(self, name: str, status: Status) -> None:
        CaseReport(self._index, name, self.operation, status).write(self._log)

    def new_group(self, ranks: Sequence[int] | None = None, **options: Any) -> Any:
        """Return a new group of some ranks, by default of all."""
        return dist.new_group(list(range(self.size) if ranks is None else ranks), **options)

    def init(self, timeout: float = 60, backend: str | None = None, **options: Any) -> None:
        """Initialize the default group, with a new store unless the options say another place."""
        self._groups += 1
        options = {"rank": self.rank, "world_size": self.size} | options
        if not {"store", "init_method"} & options.keys():
            path = f"{self.folder}/store-{self._groups}"
            options["store"] = dist.FileStore(path, options["world_size"])
        options["timeout"] = timedelta(seconds=timeout)
        dist.init_process_group(backend or self.backend, **options)

    def full(self, count: int, value: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Return a tensor of one value on the device under test."""
        return torch.full((count,), value, dtype=dtype, device=self.device)


def require_equal(got: Any, expected: Any, what: str) -> None:
    """Raise Wrong unless two plain values are equal."""
    if got != expected:
        raise Wrong(f"{what}: expected {expected!r}, got {got!r}")


def require(condition: object, text: str) -> None:
    """Raise Wrong with the text unless the condition holds."""
    if not condition:
        raise Wrong(text)


def error_of(
    call: Callable[..., Any], *arguments: Any, **options: Any
) -> tuple[Exception | None, float]:
    """Return the exception that a call raises and the seconds until then, or (None, seconds)."""
    start = time.monotonic()
    try:
        call(*arguments, **options)
    except Exception as error:
        return error, time.monotonic() - start
    return None, time.monotonic() - start


def is_unsupported(error: Exception, backend: str, operation: str) -> bool:
    """Tell whether an exception says that the backend does not have the operation at all."""
    text = str(error).lower()
    phrases = ("not support", "unsupported", "not implemented", "only implemented", "does not have")
    return verdicts.is_clear(text, backend, operation) and any(x in text for x in phrases)
