"""Run a function in several ranks of a group of `store`, which are forks of this process."""

import os
import pickle
import signal
import socket
import tempfile
import time
import traceback
from datetime import timedelta
from pathlib import Path

import store_collectives
import torch
import torch.distributed as dist


def run(function, size, *arguments, timeout=60, init=True, **group):
    """Return what `function(rank, *arguments)` returns in each rank, or None if it was killed.

    With `init`, it begins in a group, for which `start` takes the other arguments. Raises
    AssertionError with the traceback of a rank that raises, or TimeoutError after `timeout`
    seconds; all ranks and the server of their store have ended then.
    """
    # All are forked before the server has a thread, which could have locked anything.
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        os.environ["STORE_PORT"] = str(listener.getsockname()[1])
        if (server := os.fork()) == 0:
            _serve(listener)
        os.environ["STORE_SERVER"] = str(server)
        ranks = []
        for rank in range(size):
            if (process := os.fork()) == 0:
                os.environ.update(RANK=str(rank), WORLD_SIZE=str(size))
                _rank(function, rank, arguments, init, group, Path(folder, str(rank)))
            ranks.append(process)
        deadline, left = time.monotonic() + timeout, set(ranks)
        while left and time.monotonic() < deadline:
            time.sleep(0.01)
            left = {x for x in left if os.waitpid(x, os.WNOHANG)[0] == 0}
        for process in [*left, server]:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        paths = [Path(folder, str(rank)) for rank in range(size)]
        answers = [pickle.loads(x.read_bytes()) if x.exists() else (True, None) for x in paths]
    assert all(good for good, _ in answers), "\n".join(x for good, x in answers if not good)
    if left:
        raise TimeoutError(f"ranks {[ranks.index(x) for x in left]} have not ended")
    return [answer for _, answer in answers]


def client():
    """Return a connection to the store of the ranks, whose keys gate what they do."""
    return dist.TCPStore("127.0.0.1", int(os.environ["STORE_PORT"]), wait_for_workers=False)


def start(seconds=30, can_block=True, options=None):
    """Make the default group, with a timeout of `seconds`."""
    options = options or store_collectives.Options()
    options.can_block = can_block
    dist.init_process_group(
        "store",
        store=dist.PrefixStore("group", client()),
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=timedelta(seconds=seconds),
        pg_options=options,
    )


def error_of(call, *arguments, **options):
    """Return the type's name and the text of the error that a call raises, and its seconds."""
    begin = time.monotonic()
    try:
        call(*arguments, **options)
    except (RuntimeError, ValueError) as error:
        return type(error).__name__, str(error), time.monotonic() - begin
    raise AssertionError("nothing was raised")


def _serve(listener):
    server = dist.TCPStore(
        *listener.getsockname(),
        is_master=True,
        wait_for_workers=False,
        master_listen_fd=listener.detach(),
    )
    while server:
        signal.pause()


def _rank(function, rank, arguments, init, group, path):
    try:
        torch.set_num_threads(1)
        if init:
            start(**group)
        answer = (True, function(rank, *arguments))
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:
        answer = (False, f"rank {rank}: {traceback.format_exc()}")
    path.write_bytes(pickle.dumps(answer))
    os._exit(0)
