"""Run a function in several ranks, which are forks of this process."""

import os
import pickle
import signal
import tempfile
import time
import traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from shm_collectives import Options  # noqa: F401


class Killed(Exception):
    """The rank ended by a signal."""


def run(function, size, *arguments, timeout=60, group_timeout=20, init=True, options=None):
    """Return what `function(rank, *arguments)` returns in each rank of a group.

    An exception in a rank is raised here, with the traceback of that rank, unless the function
    returns it. A rank that a signal ends returns `Killed`. All ranks are killed after `timeout`
    seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store")
        ranks = [
            _start(function, rank, size, arguments, store, group_timeout, init, options)
            for rank in range(size)
        ]
        return _collect(ranks, timeout)


def _start(function, rank, size, arguments, store, group_timeout, init, options):
    receiving, sending = os.pipe()
    process = os.fork()
    if process:
        os.close(sending)
        return process, receiving
    status = 1
    try:
        os.close(receiving)
        torch.set_num_threads(1)
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), STORE=str(store))
        try:
            if init:
                start_group(timeout=group_timeout, options=options)
            result = function(rank, *arguments)
            if dist.is_initialized():
                dist.destroy_process_group()
            answer = (True, result)
        except BaseException:
            answer = (False, traceback.format_exc())
        with os.fdopen(sending, "wb") as pipe:
            pickle.dump(answer, pipe)
        status = 0
    finally:
        os._exit(status)


def _collect(ranks, timeout):
    deadline = time.monotonic() + timeout
    answers = []
    try:
        for _, receiving in ranks:
            os.set_blocking(receiving, False)
            data = b""
            while True:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"rank {len(answers)} has not ended in {timeout} s")
                try:
                    part = os.read(receiving, 1 << 20)
                except BlockingIOError:
                    time.sleep(0.002)
                    continue
                if not part:
                    break
                data += part
            answers.append(pickle.loads(data) if data else (True, Killed()))
    finally:
        for process, receiving in ranks:
            os.close(receiving)
            if len(answers) < len(ranks):
                os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    for rank, (good, answer) in enumerate(answers):
        if not good:
            others = [text for ok, text in answers[rank + 1 :] if not ok]
            raise AssertionError(f"in rank {rank}:\n{answer}" + "\n".join(others))
    return [answer for _, answer in answers]


def start_group(timeout=20, options=None, backend="shm"):
    """Initialize the default group from what `run` put into the environment."""
    size = int(os.environ["WORLD_SIZE"])
    dist.init_process_group(
        backend,
        store=dist.FileStore(os.environ["STORE"], size),
        rank=int(os.environ["RANK"]),
        world_size=size,
        timeout=timedelta(seconds=timeout),
        pg_options=options,
    )


def error_of(call, *arguments, **options):
    """Return the type's name, the text and the seconds of the error that a call raises."""
    start = time.monotonic()
    try:
        call(*arguments, **options)
    except Exception as error:
        return type(error).__name__, str(error), time.monotonic() - start
    raise AssertionError("nothing was raised")
