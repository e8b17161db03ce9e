"""Program: start three ranks, lose rank 2 in several ways, and print what the others raise."""

import os
import re
import signal
from datetime import timedelta
from functools import partial

import torch
import torch.distributed as dist

import mpi_collectives  # importing it registers "mpich"
from three_ranks import errors_of

# [ways]
WAYS = {
    "is killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "leaves the group": lambda: dist.destroy_process_group(),
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
def start(rank, store, network):
    """Make the default group, whose ranks reach each other through the network or memory."""
    os.environ["MPIR_CVAR_NOLOCAL"] = str(int(network))
    dist.init_process_group("mpich", store=store, rank=rank, world_size=3)


def errors(way, network):
    """Return the errors of ranks 0 and 1, without the number of the rank itself."""
    texts = errors_of(partial(start, network=network), partial(run_rank, way=way))
    return [re.sub(r"rank \d has waited", "this rank has waited", text) for text in texts]


if __name__ == "__main__":
    for way in WAYS:
        found = errors(way, network=False)
        print("rank 2", way)
        print("   ", "\n    ".join(found))
        print("    the same over the network:", found == errors(way, network=True))
