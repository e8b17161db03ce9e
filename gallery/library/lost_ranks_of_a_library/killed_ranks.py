"""Program: start three ranks, lose rank 2 in several ways, and print what the others raise."""

import multiprocessing
import os
import re
import signal
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist

import mpi_collectives  # importing it registers "mpich"

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
def start(rank, way, network, path, errors):
    """Run a rank, and send its error to the parent, without the numbers that change."""
    torch.set_num_threads(1)
    os.environ["MPIR_CVAR_NOLOCAL"] = str(int(network))
    dist.init_process_group(
        "mpich",
        store=dist.FileStore(path, 3),
        rank=rank,
        world_size=3,
    )
    try:
        run_rank(rank, way)
    except dist.DistBackendError as error:
        text = str(error).splitlines()[0].partition(" failed on ")[2]
        text = re.sub(r"process \d+", "process ...", text)
        errors.send(re.sub(r"rank \d has waited", "this rank has waited", text))
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def errors_of(way, network):
    """Return the errors of ranks 0 and 1."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(3):
            receiving, sending = context.Pipe(duplex=False)
            process = context.Process(
                target=start, args=(rank, way, network, f"{folder}/store", sending)
            )
            process.start()
            sending.close()
            ranks.append((process, receiving))
        texts = []
        for process, receiving in ranks[:2]:
            texts.append(receiving.recv() if receiving.poll(30) else "no error within 30 s")
            process.join(10)
        for process, _ in ranks:
            process.kill()
            process.join()
        return texts


if __name__ == "__main__":
    for way in WAYS:
        errors = errors_of(way, network=False)
        print("rank 2", way)
        print("   ", "\n    ".join(errors))
        print("    the same over the network:", errors == errors_of(way, network=True))
