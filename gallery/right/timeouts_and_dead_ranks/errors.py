"""Worker: call what does not fit together, and print the error of each rank."""

from datetime import timedelta

import torch
import torch.distributed as dist

import store_collectives  # importing it registers "store"


def show(group, call):
    """Print the first line of the error that a call raises, in two parts."""
    try:
        call(group)
    except dist.DistBackendError as error:
        where, _, why = str(error).splitlines()[0].partition(": ")[2].partition(": ")
        print(f"{where}:\n    {why}")


# [calls]
dist.init_process_group("store")
rank = dist.get_rank()
seconds = timedelta(seconds=2)
sizes, lost, alone = [dist.new_group(timeout=seconds) for _ in range(3)]

show(sizes, lambda group: dist.all_reduce(torch.ones(2 + rank), group=group))
if rank == 0:
    show(lost, lambda group: dist.broadcast(torch.ones(2), 1, group=group))
    show(alone, lambda group: dist.recv(torch.empty(2), group=group))
else:
    dist.destroy_process_group(lost)
    dist.destroy_process_group(alone)
dist.barrier()
# [/calls]
dist.destroy_process_group()
