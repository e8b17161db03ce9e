"""Program: start three ranks, lose rank 2 in several ways, and print what the others raise."""

import os
import signal
from datetime import timedelta
from functools import partial

import torch
import torch.distributed as dist

import tcp_collectives  # importing it registers "tcp"
from three_ranks import errors_of

# [ways]
WAYS = {
    "is killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "leaves the group": lambda: dist.destroy_process_group(),
    "aborts the group": lambda: dist.group.WORLD.abort(),
    "is stopped": lambda: os.kill(os.getpid(), signal.SIGSTOP),
}


def run_rank(rank, way):
    """Reduce, and then wait in a barrier for rank 2, which does something else."""
    dist.all_reduce(torch.ones(1000))
    if rank == 2:
        WAYS[way]()
    else:
        dist.barrier(timeout=timedelta(seconds=2))


# [/ways]
def start(rank, store):
    """Make the default group."""
    options = tcp_collectives.Options()
    options.interface = "lo"
    dist.init_process_group("tcp", store=store, rank=rank, world_size=3, pg_options=options)


if __name__ == "__main__":
    for way in WAYS:
        print("rank 2", way)
        print("   ", "\n    ".join(errors_of(start, partial(run_rank, way=way))))
