"""Run a function in several ranks of a group of `store`, which are forks of this process."""

import os
import pickle
import tempfile
import time
import traceback
from datetime import timedelta
from pathlib import Path

import store_collectives
import torch
import torch.distributed as dist


def run(function, size, *arguments, timeout=60, seconds=30, can_block=True):
    """Return what `function(rank, *arguments)` returns in each rank, or None if it was killed.

    `seconds` is the timeout of the group. Raises AssertionError with the traceback of a rank
    that raises, or TimeoutError after `timeout` seconds; all ranks have ended then.
    """
    master = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    ranks = []
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(size):
            process = os.fork()
            if process == 0:
                _rank(function, rank, size, arguments, master.port, folder, seconds, can_block)
            ranks.append(process)
        deadline, left = time.monotonic() + timeout, set(ranks)
        while left and time.monotonic() < deadline:
            time.sleep(0.01)
            left = {x for x in left if os.waitpid(x, os.WNOHANG)[0] == 0}
        for process in left:
            os.kill(process, 9)
            os.waitpid(process, 0)
        paths = [Path(folder, str(rank)) for rank in range(size)]
        answers = [pickle.loads(x.read_bytes()) if x.exists() else (True, None) for x in paths]
    assert all(good for good, _ in answers), "\n".join(x for good, x in answers if not good)
    if left:
        raise TimeoutError(f"ranks {[ranks.index(x) for x in left]} have not ended")
    return [answer for _, answer in answers]


def _rank(function, rank, size, arguments, port, folder, seconds, can_block):
    try:
        torch.set_num_threads(1)
        options = store_collectives.Options()
        options.can_block = can_block
        dist.init_process_group(
            "store",
            store=dist.TCPStore("127.0.0.1", port, wait_for_workers=False),
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=seconds),
            pg_options=options,
        )
        answer = (True, function(rank, *arguments))
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:
        answer = (False, f"rank {rank}: {traceback.format_exc()}")
    Path(folder, str(rank)).write_bytes(pickle.dumps(answer))
    os._exit(0)
