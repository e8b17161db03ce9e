"""What a check is given in each rank: its place in the group, and how to report a case."""

import json
import os
import time
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

from c10d_conformance import verdicts


class Wrong(Exception):
    """A promise is broken; the text says which value was expected and which was there."""


class Rank:
    """One rank of a check."""

    def __init__(self, rank, size, settings, board, log, folder):
        self.rank = rank
        self.size = size
        self.backend = settings.backend
        self.module = settings.module
        self.device = None  # until the module of the backend is imported, which may name it
        self.quick = settings.quick
        self.folder = folder
        self.operation = ""
        self._board = board
        self._log = log
        self._skip = 0
        self._index = 0
        self._groups = 0
        self._name = ""

    @property
    def others(self):
        """Return the numbers of all other ranks."""
        return [rank for rank in range(self.size) if rank != self.rank]

    @property
    def next_case(self):
        """Return the number of the case that has not begun."""
        return self._index + 1

    def start(self, check, skip):
        """Begin a check whose first `skip` cases have been run already."""
        self._skip, self._index, self.operation = skip, 0, check.capability

    def case(self, name, body, *arguments):
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
            if body(*arguments) == verdicts.ABSENT:
                kind = verdicts.ABSENT
        except Wrong as error:
            kind, text = verdicts.WRONG, str(error)
        except (RuntimeError, ValueError, TypeError) as error:
            kind, text, trace = verdicts.RAISED, str(error), traceback.format_exc()
            if isinstance(error, RecursionError):
                kind = verdicts.WRONG
        except Exception as error:
            kind, trace = verdicts.WRONG, traceback.format_exc()
            text = f"{type(error).__name__}: {error}"
        report = [self._index, name, self.operation, kind, text, trace]
        os.write(self._log, json.dumps(report).encode() + b"\n")
        self._board.end(self.rank)
        if kind in (verdicts.WRONG, verdicts.RAISED):
            # Where one rank has stopped early, the next case must not meet the rest of this one.
            begun = self._board.numbers(self.rank)[0]
            self._board.wait(lambda numbers: numbers[1] >= begun)

    def meet(self):
        """Return when all ranks have called this; the backend has no part in it."""
        self._board.count(self.rank)
        mine = self._board.numbers(self.rank)[2]
        self._board.wait(lambda numbers: numbers[2] >= mine)

    def share(self, name, text):
        """Return the texts that all ranks give here; the backend has no part in it."""
        path = f"{self.folder}/share-{name}-{{}}"
        with open(path.format(self.rank), "w") as file:
            file.write(text)
        self.meet()
        texts = []
        for rank in range(self.size):
            with open(path.format(rank)) as file:
                texts.append(file.read())
        self.meet()
        return texts

    def leave(self):
        """Report that this rank has no part in the case, which it ends with its process."""
        report = [self._index, self._name, self.operation, verdicts.ABSENT, "", ""]
        os.write(self._log, json.dumps(report).encode() + b"\n")
        self._board.leave(self.rank)

    def init(self, timeout=60, backend=None, **options):
        """Initialize the default group."""
        self._groups += 1
        store = dist.FileStore(f"{self.folder}/store-{self._groups}", self.size)
        dist.init_process_group(
            backend or self.backend,
            store=store,
            rank=self.rank,
            world_size=self.size,
            timeout=timedelta(seconds=timeout),
            **options,
        )

    def tensor(self, values, dtype=None):
        """Return a tensor on the device under test."""
        return torch.tensor(values, dtype=dtype, device=self.device)

    def full(self, count, value, dtype=torch.float32):
        """Return a tensor of one value on the device under test."""
        return torch.full((count,), value, dtype=dtype, device=self.device)


def equal(got, expected, what="the result"):
    """Raise Wrong unless two plain values are equal."""
    if got != expected:
        raise Wrong(f"{what}: expected {expected!r}, got {got!r}")


def true(condition, text):
    """Raise Wrong with the text unless the condition holds."""
    if not condition:
        raise Wrong(text)


def error_of(call, *arguments, **options):
    """Return the exception that a call raises and the seconds until then, or (None, seconds)."""
    start = time.monotonic()
    try:
        call(*arguments, **options)
    except Exception as error:
        return error, time.monotonic() - start
    return None, time.monotonic() - start


def is_unsupported(error, backend, operation):
    """Tell whether an exception says that the backend does not have the operation at all."""
    text = str(error).lower()
    phrases = ("not support", "unsupported", "not implemented", "only implemented", "does not have")
    return verdicts.is_clear(text, backend, operation) and any(x in text for x in phrases)
