"""The backend `mpich`: values and starts. The suite makes groups again."""

import ctypes
import itertools
import os

import pytest
import torch
import torch.distributed as dist
from mpi_ranks import BOTH_WAYS, by_mpiexec, names_in_shared_memory, run, start
from random_operations import play
from torch.distributed import ReduceOp


@BOTH_WAYS
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("size", [2, 3])
def test_random_operations(size, way):
    run(play, size, size, f"seed {size}", 60)


def reductions(rank):
    """Reduce what MPI cannot: by the frame, in a call of MPI. Long enough for one."""
    size = dist.get_world_size()
    results = {}
    for dtype in [torch.half, torch.bfloat16, torch.float8_e4m3fn, torch.bool]:
        tensor = torch.full((3001,), rank % 2, dtype=torch.float).to(dtype)
        dist.all_reduce(tensor)
        results[str(dtype)] = tensor.to(torch.float).unique().tolist()
    average = torch.full((3001,), float(rank)).to(torch.bfloat16)
    dist.all_reduce(average, ReduceOp.AVG)
    results["AVG"] = average.unique().tolist()
    # Their sum would be infinite. The other ranks keep their tensor, which is the same here.
    large = torch.full((3001,), 30_000.0, dtype=torch.half)
    dist.reduce(large, 0, ReduceOp.AVG)
    results["large"] = large.unique().tolist()
    largest = torch.full((3001,), float("nan") if rank == 1 else 1.0)
    dist.all_reduce(largest, ReduceOp.MAX)
    results["MAX"] = largest.isnan().all().item()
    part = torch.empty(1001)
    whole = torch.arange(1001.0 * size)
    dist.reduce_scatter_tensor(part, whole, ReduceOp.AVG)
    results["part"] = part.equal(whole[rank * 1001 : (rank + 1) * 1001])
    return results


@BOTH_WAYS
def test_reductions_that_mpi_does_not_have(way):
    for results in run(reductions, 4):
        assert results.pop("torch.bool") == [1]
        assert results.pop("AVG") == [1.5]
        assert results.pop("large") == [30_000]
        assert results.pop("MAX") is True and results.pop("part") is True
        assert set(map(tuple, results.values())) == {(2.0,)}


def traces(rank):
    return names_in_shared_memory(), [x for x in os.environ if "PMI" in x]


def test_other_programs_see_nothing_of_the_start():
    """Neither names in shared memory nor variables for the programs that a rank starts."""
    assert run(traces, 2) == [([], [])] * 2


def list_of_variables():
    environ = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    return ctypes.cast(environ, ctypes.POINTER(ctypes.c_void_p))  # not the variable, which changes


def variables_while_mpi_starts(rank):
    """Return the addresses of all variables in the list before the start, and after it."""
    os.environ["OF_THIS_TEST"] = "here"  # lets the C library have the list in memory of its own
    variables = list_of_variables()
    count = next(i for i in itertools.count() if not variables[i])
    before = variables[: count + 1]
    start()
    now = list_of_variables()
    return before, variables[: count + 1], now[: count + 1]


def test_another_thread_can_read_variables_while_mpi_starts():
    """The list that a thread has begun to read stays as it was, and so do the variables."""
    for before, list_of_before, now in run(variables_while_mpi_starts, 2, init=False):
        assert before == list_of_before and before == now


def test_mpiexec_starts_the_ranks():
    done = by_mpiexec()
    assert done.stdout.split() == ["2.0", "2.0"], done.stderr
