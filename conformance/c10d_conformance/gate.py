"""Kernels that are late because a check says so, which is how it decides about streams."""

import threading
import time
from typing import Any

import torch

MOST = 3.0  # seconds that a gate holds streams, in case the host waits for what it holds
_CYCLES = 2_000_000_000  # of a slow kernel: about a second
_PAUSE = 0.05  # seconds in which a kernel that waits for nothing ends


class Gate:
    """Holds streams of an accelerator, in a block, until it is opened.

    The module of a simulated device may have `Gate` and `settle`, as that of `sim` has: then the
    host decides when a stream goes on. On other devices a slow kernel holds the stream, and ends by
    itself: a check may miss a bug if the host is slower, but reports none that is not there.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._module: Any = torch.get_device_module(device)
        self._gate = self._module.Gate() if hasattr(self._module, "Gate") else None
        self._ends: list[torch.Event] = []  # of slow kernels
        self._opened = False
        self.timed_out = False  # as the host waited for a stream that the gate holds
        self._timer = threading.Timer(MOST, self._time_out)
        self._timer.daemon = True

    def __enter__(self) -> "Gate":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self.open()

    def hold(self) -> None:
        """Let the current stream stand from here on."""
        if self._gate:
            self._gate.hold()
            return
        if hasattr(self._module, "_sleep"):
            self._module._sleep(_CYCLES)
        else:
            numbers = torch.ones(4096, 4096, device=self._device)
            for _ in range(300):
                torch.mm(numbers, numbers)
        self._ends.append(torch.Event(self._device))
        self._ends[-1].record()

    def _time_out(self) -> None:
        self.timed_out = self._gate is not None and not self._opened
        self.open()

    def open(self) -> None:
        """Let the streams go on."""
        self._opened = True
        if self._gate:
            self._gate.open()

    @property
    def holds(self) -> bool:
        """Tell whether the streams stand."""
        return not self._opened and not any(end.query() for end in self._ends)

    def settle(self, peers: bool = True) -> None:
        """Return when all has run that waits for no gate and, without `peers`, no other rank."""
        if self._gate:
            self._module.settle(peers=peers)
        else:
            time.sleep(_PAUSE)

    def settle_thread(self, thread: threading.Thread) -> None:
        """Return when a thread has ended, or waits for the device."""
        deadline = time.monotonic() + 0.5
        waiting = getattr(self._module, "waiting_threads", int)
        while thread.is_alive() and not waiting() and time.monotonic() < deadline:
            time.sleep(0.001)
