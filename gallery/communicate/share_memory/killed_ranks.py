"""Program: kill the ranks of a group, and look for their memory before and after."""

import os
import signal
import tempfile
from multiprocessing import get_context
from pathlib import Path

import torch
import torch.distributed as dist

import shm_collectives  # importing it registers "shm"


# [rank]
def rank_of_a_group(rank, folder, barrier):
    """Use a group of two ranks, and then never destroy it."""
    store = dist.FileStore(f"{folder}/store", 2)
    dist.init_process_group("shm", store=store, rank=rank, world_size=2)
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == 2
    barrier.wait()
    barrier.wait()  # until a signal ends it


# [/rank]
def mappings(processes="[0-9]*"):
    """Return the (inode, bytes) that these processes have mapped from the memory of shm."""
    found = []
    for path in Path("/proc").glob(f"{processes}/maps"):
        try:
            lines = path.read_text().splitlines()
        except OSError:  # of another user, or it has ended
            continue
        for line in lines:
            if line.endswith(" /memfd:shm_collectives (deleted)"):
                addresses, _, _, _, inode = line.split()[:5]
                start, end = (int(address, 16) for address in addresses.split("-"))
                found.append((inode, end - start))
    return found


def look_for(memory):
    """Print how many processes have mapped this memory, and how many files are as large."""
    files = [path for path in Path("/dev/shm").iterdir() if path.exists()]
    sizes = [path.stat().st_size for path in files]
    print("    processes that have it:", mappings().count(memory))
    print("    files of its size in /dev/shm:", sizes.count(memory[1]))


# [signals]
if __name__ == "__main__":
    context = get_context("spawn")
    barrier = context.Barrier(3)
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(2):
            arguments = [rank, folder, barrier]
            ranks.append(context.Process(target=rank_of_a_group, args=arguments))
            ranks[rank].start()
        barrier.wait()
        [memory] = mappings(ranks[0].pid)
        print("while the ranks run")
        look_for(memory)
        for rank, number in enumerate([signal.SIGTERM, signal.SIGKILL]):
            os.kill(ranks[rank].pid, number)
            ranks[rank].join()
            print("after", number.name, "to rank", rank)
            look_for(memory)
# [/signals]
