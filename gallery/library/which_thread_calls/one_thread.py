"""Worker: make two groups that share a thread of MPI, and let rank 1 be late in one."""

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

import mpi_collectives  # importing it registers "mpich"

store, rank, size = next(dist.rendezvous("env://"))
dist.init_process_group("mpich", store=store, rank=rank, world_size=size)


# [program]
def threads_of_mpi():
    """Return the ids of the threads that call MPI, or were started by those."""
    numbers = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # another thread may end meanwhile
            if (thread / "comm").read_text() == "MPI\n":
                numbers.add(thread.name)
    return numbers


def sum_of_ones(group=None):
    tensor = torch.ones(1000)
    dist.all_reduce(tensor, group=group)
    return tensor[0].item()


before = threads_of_mpi()
group = dist.new_group(timeout=timedelta(seconds=1))
print("another thread for the second group:", threads_of_mpi() != before)
try:
    if rank == 1:
        store.wait(["rank 0 has given up"])
    sum_of_ones(group)
except dist.DistBackendError as error:
    print("second group:", str(error).splitlines()[0].split(" failed on ")[-1])
store.set("rank 0 has given up", "")
print("first group: the sum is", sum_of_ones())
# [/program]
dist.destroy_process_group()
