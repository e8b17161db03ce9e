"""The device `sim` as one without gates, where slow kernels hold streams, as on a GPU."""

import threading

import stream_collectives  # noqa: F401
import torch

_Gate = torch.sim.Gate
del torch.sim.Gate, torch.sim.settle, torch.sim.waiting_threads


def _sleep(_):
    gate = _Gate()
    gate.hold()
    threading.Timer(1, gate.open).start()


torch.sim._sleep = _sleep
