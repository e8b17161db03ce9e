"""Memory that the ranks and the suite share, so that they can meet without the backend."""

import mmap
import struct
import time
from collections.abc import Callable

Numbers = tuple[int, int, int]

_NUMBERS = struct.Struct("@qqq")
_NAME = 488
_GONE = 1 << 60
_ROW = _NUMBERS.size + _NAME


class Board:
    """For each rank: the number of cases begun and ended, a free counter, and the case's name."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._memory = mmap.mmap(-1, size * _ROW)

    def begin(self, rank: int, name: str) -> None:
        """Note that a rank begins a case."""
        text = name.encode()[:_NAME].ljust(_NAME, b"\0")
        start = rank * _ROW
        self._memory[start + _NUMBERS.size : start + _ROW] = text
        begun, ended, counter = self.numbers(rank)
        self._set(rank, begun + 1, ended, counter)

    def end(self, rank: int) -> None:
        """Note that a rank has ended the case that it had begun."""
        begun, _, counter = self.numbers(rank)
        self._set(rank, begun, begun, counter)

    def count(self, rank: int) -> None:
        """Add one to the rank's free counter."""
        begun, ended, counter = self.numbers(rank)
        self._set(rank, begun, ended, counter + 1)

    def has_left(self, rank: int) -> bool:
        """Tell whether a rank has called `leave`."""
        return self.numbers(rank)[0] == _GONE

    def numbers(self, rank: int) -> Numbers:
        """Return (begun, ended, counter) of a rank."""
        return _NUMBERS.unpack_from(self._memory, rank * _ROW)

    def name(self, rank: int) -> str:
        """Return the name of the case that the rank began last."""
        start = rank * _ROW + _NUMBERS.size
        return self._memory[start : start + _NAME].rstrip(b"\0").decode(errors="replace")

    def clear(self) -> None:
        """Set all numbers to zero."""
        for rank in range(self.size):
            self._set(rank, 0, 0, 0)

    def leave(self, rank: int) -> None:
        """Note that a rank ends its process: nobody has to wait for it any more."""
        self._set(rank, _GONE, _GONE, _GONE)

    def restart(self, rank: int) -> None:
        """Set the cases of a rank to zero."""
        self._set(rank, 0, 0, self.numbers(rank)[2])

    def snapshot(self) -> list[Numbers]:
        """Return something that changes whenever a rank makes progress."""
        return [self.numbers(rank) for rank in range(self.size)]

    def wait(self, condition: Callable[[Numbers], bool]) -> None:
        """Return when `condition(numbers)` is true for every rank."""
        pause = 0.0
        while not all(condition(self.numbers(rank)) for rank in range(self.size)):
            time.sleep(pause)
            pause = min(0.002, pause + 0.0001)

    def _set(self, rank: int, *numbers: int) -> None:
        _NUMBERS.pack_into(self._memory, rank * _ROW, *numbers)
