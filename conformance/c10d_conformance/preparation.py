"""What comes before the first check, in this order: hosts, imports, and a look at the backend."""

import contextlib
import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from c10d_conformance import registry
from c10d_conformance.hosts import HostsError, simulated_hosts
from c10d_conformance.registry import Check
from c10d_conformance.settings import Mistake, Settings

if TYPE_CHECKING:
    from c10d_conformance.pool import Pool


@contextlib.contextmanager
def prepared_pool(settings: Settings) -> "Iterator[Pool]":
    """Return a pool of ranks with the backend. Raises Mistake if there is no such backend here.

    The process must have neither threads nor the backend: its ranks are forked.
    """
    with contextlib.ExitStack() as stack:
        # The hosts come first: libraries start threads, and a process with threads may not have
        # them.
        try:
            several = settings.hosts > 1
            hosts = stack.enter_context(simulated_hosts(settings.hosts)) if several else []
        except HostsError as error:
            raise Mistake(str(error)) from None
        load_checks()
        from c10d_conformance.pool import Pool

        probe(settings)
        pool = Pool(settings, hosts)
        stack.callback(pool.close)
        yield pool


def load_checks() -> list[Check]:
    """Return all checks, which need PyTorch. Raises Mistake if that is missing or too old."""
    try:
        return registry.load()
    except ImportError as error:
        raise Mistake(
            f"the suite needs PyTorch 2.13 or later, pytest 8 and hypothesis: {error}"
        ) from None


def probe(settings: Settings) -> None:
    """Import the backend in a process of its own, so that this one stays able to fork."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_try_import, args=(settings, theirs), daemon=True)
    process.start()
    theirs.close()
    problem: str | None = f"importing {settings.module} ended the process"
    if ours.poll(120):
        with contextlib.suppress(EOFError):
            problem = ours.recv()
    else:
        problem = f"importing {settings.module} takes more than 120 s"
    process.kill()
    process.join()
    if problem:
        raise Mistake(problem)


def _try_import(settings: Settings, pipe: Connection) -> None:
    import torch
    import torch.distributed as dist

    from c10d_conformance.pool import import_backend

    start, problem = settings.start, None
    try:
        import_backend(settings)
    except BaseException as error:
        module, backend = f"import {settings.module}", f"backend {settings.backend}"
        option = start + (module if settings.module else backend)
        problem = f"{option} fails: {type(error).__name__}: {error}"
    names = [name.lower() for name in dist.Backend.backend_list]
    if not problem and settings.backend.lower() not in names:
        problem = (
            f"no backend is called {settings.backend!r}; known are "
            f"{', '.join(name for name in names if name != 'undefined')}. "
            f"Give the module that registers it with {start}import."
        )
    if not problem:
        try:
            if torch.device(settings.device).type != "cpu":
                torch.empty(1, device=settings.device)
        except Exception as error:
            problem = f"{start}device {settings.device}: {error}"
    pipe.send(problem)
