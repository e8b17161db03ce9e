"""Worker: find the largest of two numbers, of which one is NaN, by MPI and by the backend."""

import torch
import torch.distributed as dist

import mpi_collectives  # importing it registers "mpich"
from mpi_by_ctypes import HANDLES, arguments_of, mpi

dist.init_process_group("mpich")
rank = dist.get_rank()
dist.barrier()  # the thread of MPI has nothing to do from here on


# [mistake]
def max_by_mpi(tensor):
    """Take the operation of MPI that has the same name."""
    result = torch.empty_like(tensor)
    arguments = arguments_of(tensor, result, "MPI_FLOAT", "MPI_MAX")
    mpi.MPI_Allreduce(*arguments, HANDLES["MPI_COMM_WORLD"])
    tensor.copy_(result)


# [/mistake]
def max_by_backend(tensor):
    dist.all_reduce(tensor, dist.ReduceOp.MAX)


# [use]
for all_reduce in [max_by_mpi, max_by_backend]:
    norm = torch.tensor([float("nan") if rank == 0 else 1.0])
    all_reduce(norm)
    acts = "takes" if norm.isfinite() else "skips"
    print(f"{all_reduce.__name__}: the norm is {norm.item()}, this rank {acts} the step")

    numbers = torch.full((1000,), float("nan") if rank == 0 else 1.0)
    all_reduce(numbers)
    print(f"    of 1000 numbers, {numbers.isnan().sum()} are NaN")
# [/use]
dist.destroy_process_group()
