"""Worker: send with a tag that MPI does not take, and receive into a smaller tensor."""

import re

import torch
import torch.distributed as dist

import mpi_collectives  # importing it registers "mpich"

dist.init_process_group("mpich")
rank = dist.get_rank()


def show(name, call):
    """Print what a call raises. Some numbers depend on the network of MPI."""
    try:
        call()
        print(f"{name}: has returned")
    except dist.DistBackendError as error:
        reason = str(error).splitlines()[0].split(" failed on ")[-1]
        reason = re.sub(r"(?<=tags from 0 to )\d+", "MPI_TAG_UB - 16385", reason)
        print(f"{name}: {re.sub(r'(?<=Message truncated): .*', '', reason)}")


# [errors]
group = dist.new_group()
if rank == 0:
    tag = 2**31 - 1
    show("send", lambda: dist.send(torch.ones(1), 1, tag=tag, group=group))
dist.barrier()

group = dist.new_group()
if rank == 0:
    show("send of 3", lambda: dist.send(torch.ones(3), 1, group=group))
else:
    show("recv of 2", lambda: dist.recv(torch.ones(2), 0, group=group))
# [/errors]
dist.barrier()
dist.destroy_process_group()
